import { z } from 'zod';
import { CLAIM_OPERATIONS } from '../domain/claim-operation.ts';
import { ObjectType } from '../domain/fields.ts';
import { objectOf } from '../domain/ids.ts';
import { isoTime } from '../domain/iso-time.ts';
import { Mode } from '../domain/mode.ts';
import type { OPERATION_COLUMNS } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';
import { NetworkAnswer, OperationStatus, OperationType, operationId } from './rules.ts';

const ResourceType = z.enum([
  'card',
  'topup',
  'withdrawal',
  'deposit',
  'transaction',
  'authorization',
  'faucet_credit',
]);

const OperationResourceReference = z
  .object({
    type: ResourceType.describe('What it is.'),
    id: z.string().describe('Its id.'),
  })
  .meta({
    id: 'OperationResource',
    description:
      'What an operation made or changed. While the operation is in progress, it may not be there yet.',
  });

const NetworkProgress = z
  .object({
    asked: z.int().min(0).describe('How often we have asked it, a moment after each time.'),
    last_answer: NetworkAnswer.nullable().describe(
      'What came of the last time that it answered, or did not in time. Null if there was none yet.',
    ),
    last_asked_at: z.iso.datetime().nullable().describe('When we asked it the last time.'),
    next_ask_at: z.iso
      .datetime()
      .nullable()
      .describe(
        'When we ask again, or earlier if the network reports. Null if we do not ask again, or are asking right now.',
      ),
    deadline: z.iso
      .datetime()
      .nullable()
      .describe(
        'Until when the network can decide; after that, we find out what it did. Null if there is no deadline, as for changes of a ' +
          "card's status, or we have not asked yet.",
      ),
  })
  .meta({
    id: 'OperationNetwork',
    description: 'What an operation has asked the card network for.',
  });

export const OperationResource = z
  .object({
    id: z.string().describe('Prefix `op_`. Every response to the request has it in `Operation-Id`.'),
    object: ObjectType('operation'),
    type: OperationType,
    status: OperationStatus,
    idempotency_key: z.string().describe('The Idempotency-Key of the request.'),
    resource: OperationResourceReference.nullable().describe(
      'What it made or changed. Null if the request was refused, and for `advance_test_clock`.',
    ),
    response_status: z
      .int()
      .nullable()
      .describe(
        "The status of the request's first response, which every retry gets again: a 202 stays 202. Null as long as there is none.",
      ),
    network: NetworkProgress.nullable().describe(
      'How far the card network is. Null if it is not asked, or decided the first time it was, within a second.',
    ),
    waits_for: z
      .enum(['network', 'operator'])
      .nullable()
      .describe('Whom it waits for: the card network or us. Null once it is `completed`.'),
    mode: Mode,
    created: z.iso.datetime().describe('When you sent the request.'),
    completed_at: z.iso.datetime().nullable().describe('When nothing was left to happen. Null until then.'),
  })
  .meta({ id: 'Operation', description: 'What became of a request that had an Idempotency-Key.' });
export type OperationResource = z.infer<typeof OperationResource>;

/**
 * The columns of a claim's row that {@link presentOperation} needs. A claim that is an operation has a key
 * and a status.
 */
export type OperationRow = Row<'idempotency_claim', (typeof OPERATION_COLUMNS)[number]> & {
  key: string;
  operation_status: OperationStatus;
  /** How far the account's clock was ahead of real time. */
  clock_ahead_seconds: number;
};

/** @param claimedAt the real time that the claim's id has */
export function presentOperation(row: OperationRow, claimedAt: Date): OperationResource {
  const status = row.operation_status;
  const isOver = status === 'completed';
  const created = new Date(claimedAt.getTime() + 1_000 * row.clock_ahead_seconds);
  // Another machine's clock may be behind, and what is from before this column has none.
  const completed = new Date(Math.max(created.getTime(), Date.parse(row.completed_at ?? '') || 0));
  return {
    id: operationId(row.id),
    object: 'operation',
    type: CLAIM_OPERATIONS[row.operation].type,
    status,
    idempotency_key: row.key,
    resource: readResource(row),
    response_status: row.response_status,
    network: readNetwork(row, isOver),
    waits_for: isOver ? null : status === 'awaiting_review' ? 'operator' : 'network',
    mode: row.mode,
    created: created.toISOString(),
    completed_at: isOver ? completed.toISOString() : null,
  };
}

function readResource(row: OperationRow): OperationResource['resource'] {
  if (row.response_status !== null && row.response_status >= 400) return null;
  const id = row.resource_id ?? row.card_id;
  if (id === null) return null;
  const type = ResourceType.options.find((one) => one === objectOf(id));
  return type === undefined ? null : { type, id };
}

function readNetwork(row: OperationRow, isOver: boolean): OperationResource['network'] {
  if (row.mode === 'test' || !CLAIM_OPERATIONS[row.operation].asksNetwork) return null;
  if (isOver && row.network_asked === 0) return null;
  return {
    asked: row.network_asked,
    last_answer: row.network_last_answer,
    last_asked_at: isoTime(row.network_last_asked_at),
    next_ask_at: isOver ? null : isoTime(row.network_next_ask_at),
    deadline: isoTime(row.network_deadline),
  };
}
