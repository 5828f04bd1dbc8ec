import type { WebhookEndpointResource } from './endpoint-resource.ts';
import type { WebhookReplayResource } from './replays/resource.ts';

// Real responses to a sequence of requests, as the API reference shows them.

export const WEBHOOK_ENDPOINT: WebhookEndpointResource = {
  id: 'we_01m8101zgj5d8x2v7k4c9n3qtf',
  object: 'webhook_endpoint',
  url: 'https://hooks.example.com/cards',
  mode: 'test',
  event_types: null,
  description: null,
  status: 'enabled',
  disabled_reason: null,
  standard_webhooks: false,
  previous_secret_expires_at: null,
  consecutive_failures: 0,
  failing_since: null,
  last_success_at: null,
  last_failure: null,
  created: '2026-11-22T06:45:50.402Z',
};

export const SECOND_ENDPOINT: WebhookEndpointResource = {
  ...WEBHOOK_ENDPOINT,
  id: 'we_01m8101zwr7h2b6n0d5t8y4jgc',
  url: 'https://accounting.example.com/deposits',
  event_types: ['deposit.confirmed'],
  description: 'Accounting',
  created: '2026-11-22T06:45:50.808Z',
};

export const FAILING_ENDPOINT: WebhookEndpointResource = {
  ...SECOND_ENDPOINT,
  url: 'https://accounting.example.com',
  consecutive_failures: 10,
  failing_since: '2026-11-22T06:46:10.117Z',
  last_success_at: '2026-11-22T06:46:02.951Z',
  last_failure: { at: '2026-11-22T06:52:41.730Z', http_status: 503, error: 'http_503' },
};

export const DISABLED_ENDPOINT: WebhookEndpointResource = {
  ...SECOND_ENDPOINT,
  url: 'https://accounting.example.com',
  status: 'disabled',
  disabled_reason: 'it answered 410 Gone',
  consecutive_failures: 1,
  failing_since: '2026-11-22T06:46:10.117Z',
  last_failure: { at: '2026-11-22T06:46:10.117Z', http_status: 410, error: 'http_410' },
};

export const WEBHOOK_REPLAY: WebhookReplayResource = {
  id: 'rpl_01m8102c5n9d3t7x1q6h8w2k4b',
  object: 'webhook_replay',
  endpoint_id: SECOND_ENDPOINT.id,
  status: 'running',
  matched: 214,
  sent: 0,
  mode: SECOND_ENDPOINT.mode,
  created: '2026-11-22T06:45:56.217Z',
};

export const WEBHOOK_SECRET = 'whsec_BBBM01k/A3ywjqaxEnm2scr0Eltr5KlIeIievF+a';

export const ROTATED_ENDPOINT: WebhookEndpointResource = {
  ...WEBHOOK_ENDPOINT,
  secret: WEBHOOK_SECRET,
  previous_secret_expires_at: '2026-11-23T06:45:54.530Z',
};
