import { OPERATION_ID } from '../api/openapi/examples.ts';
import { PENDING_CARD } from '../cards/examples.ts';
import type { LoggedRequestResource } from './logged-request-resource.ts';
import type { OperationResource } from './resource.ts';

// Real responses to a sequence of requests, as the API reference shows them.

export const OPERATION: OperationResource = {
  id: OPERATION_ID,
  object: 'operation',
  type: 'create_card',
  status: 'in_progress',
  idempotency_key: 'order-4712',
  resource: { type: 'card', id: PENDING_CARD.id },
  response_status: 202,
  network: {
    asked: 3,
    last_answer: 'pending',
    last_asked_at: '2026-11-22T06:45:53.671Z',
    next_ask_at: '2026-11-22T06:45:57.671Z',
    deadline: '2026-11-23T06:45:50.459Z',
  },
  waits_for: 'network',
  mode: 'live',
  created: '2026-11-22T06:45:50.459Z',
  completed_at: null,
};

export const LOGGED_REQUEST: LoggedRequestResource = {
  id: 'req_01m81024q9w3e5r7t1y2v4b6nm',
  object: 'request',
  method: 'POST',
  path: `/v1/cards/${PENDING_CARD.id}/topups`,
  status: 400,
  error: { code: 'validation_failed', param: 'amount' },
  api_key_id: 'key_01m8101zp3m7r5x1v8j2k4n6qs',
  address: '203.0.113.7',
  idempotency_key: 'order-4713',
  operation_id: null,
  duration_ms: 4,
  mode: 'live',
  created: '2026-11-22T06:45:53.641Z',
};
