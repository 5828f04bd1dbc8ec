/** The columns of a WebhookEndpointRow of table `webhook_endpoint`: what is secret of it is left out. */
export const ENDPOINT_COLUMNS = `partner_id, mode, url, status, disabled_reason, standard_headers, created_at,
  CASE WHEN previous_secret_expires_at > now() THEN previous_secret_expires_at END AS previous_secret_expires_at`;
