-- Up Migration

-- The endpoint of what was delivered before there were several. Nobody changes these rows, so nobody waits for this.
UPDATE delivery d SET endpoint_id = coalesce(
    (SELECT min(w.id) FROM webhook_endpoint w WHERE w.partner_id = d.partner_id AND w.mode = d.mode),
    'we_' || substr(d.partner_id, 5))
WHERE d.endpoint_id = '' AND d.status = 'delivered';
UPDATE delivery_attempt a SET endpoint_id = d.endpoint_id
FROM delivery d WHERE d.event_id = a.event_id AND a.endpoint_id = '';
