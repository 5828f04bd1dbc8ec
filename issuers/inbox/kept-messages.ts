import { createHmac } from 'node:crypto';
import { sql } from 'kysely';
import { ApiError } from '../../domain/api-error.ts';
import { type ReportedTransaction, readReport, type WhyKept } from '../../domain/network-transaction.ts';
import { parseJson } from '../../domain/parse-json.ts';
import type { KeyRing } from '../../platform/crypto/key-ring.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import type { Row } from '../../platform/db/entities.ts';
import type { Orm } from '../../platform/db/orm.ts';
import {
  autocommitStatement,
  readStatement,
  type Transactor,
  writeStatement,
} from '../../platform/db/sql.ts';
import type { NetworkMessageStatus } from './tables.ts';

/**
 * How many messages may wait at once, and how many bytes of bodies. Past either, the network is asked to
 * repeat.
 */
export const MAX_WAITING_MESSAGES = 10_000;
export const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** The context that a message's body is sealed for. */
export const messageContext = (messageId: string): string => `network-message/${messageId}`;

/** What the network reported, and which network that is. */
export interface ReportedMessage {
  network: string;
  /** As received. */
  body: Uint8Array;
  transaction: ReportedTransaction;
}

/** A message as the network is answered about it. */
export type KnownMessage = Row<'network_message', 'id' | 'status' | 'transaction_id'>;

/** The kept message with this content; null if there is none. */
export async function findMessage(
  orm: Orm,
  ring: KeyRing,
  report: ReportedMessage,
): Promise<KnownMessage | null> {
  const [message] = await find(orm.em.fork(), {
    network: report.network,
    messageId: report.transaction.networkTransactionId,
    fingerprints: fingerprintReports(ring, report),
  });
  return message ?? null;
}

const find = readStatement((db, values: { network: string; messageId: string; fingerprints: Buffer[] }) =>
  db
    .selectFrom('network_message')
    .select(['id', 'status', 'transaction_id'])
    .where('network', '=', values.network)
    .where('kind', '=', 'transaction')
    .where('message_id', '=', values.messageId)
    .where('fingerprint', '=', sql<Buffer>`ANY(${values.fingerprints}::bytea[])`),
);

/**
 * Keeps what the network reported until it is booked or dismissed. The same content is kept once, however
 * often and wherever it arrives at the same time.
 * @returns whether it is new
 * @throws ApiError `unavailable` if too much is waiting already: the network has to repeat it
 */
export async function keepMessage(
  orm: Orm,
  ring: KeyRing,
  report: ReportedMessage,
  reason: WhyKept,
): Promise<KnownMessage & { isNew: boolean }> {
  const id = newId('nmsg');
  const [kept] = await keep(orm, {
    id,
    network: report.network,
    messageId: report.transaction.networkTransactionId,
    fingerprint: fingerprintReports(ring, report)[0],
    body: ring.seal(report.body, messageContext(id)),
    sizeBytes: report.body.length,
    networkCardId: report.transaction.networkCardId,
    amountCents: report.transaction.amountCents,
    reason,
  });
  if (kept !== undefined) return { id, status: 'waiting', transaction_id: null, isNew: true };
  const known = await findMessage(orm, ring, report);
  if (known !== null) return { ...known, isNew: false };
  throw new ApiError('unavailable', {
    message: 'Too many transactions that could not be booked are waiting already. Repeat this one later.',
    retryAfterSeconds: 60,
  });
}

interface KeptValues {
  id: string;
  network: string;
  messageId: string;
  fingerprint: Buffer;
  body: Buffer;
  sizeBytes: number;
  networkCardId: string | null;
  amountCents: number | null;
  reason: WhyKept;
}

// Several at once may each see room for themselves, so the bounds can be passed by as many as are under way.
const keep = autocommitStatement(
  (_, values: KeptValues) => sql<{ id: string }>`
    INSERT INTO network_message
      (id, network, kind, message_id, fingerprint, body, size_bytes, network_card_id, amount_cents, reason)
    SELECT ${values.id}::text, ${values.network}::text, 'transaction', ${values.messageId}::text,
      ${values.fingerprint}::bytea, ${values.body}::bytea, ${values.sizeBytes}::integer, ${values.networkCardId}::text,
      ${values.amountCents}::bigint, ${values.reason}::text
    FROM (SELECT count(*) AS messages, coalesce(sum(size_bytes), 0) AS bytes FROM network_message WHERE status = 'waiting') w
    WHERE w.messages < ${sql.lit(MAX_WAITING_MESSAGES)}
      AND w.bytes + ${values.sizeBytes}::integer <= ${sql.lit(MAX_WAITING_BYTES)}
    ON CONFLICT (network, kind, message_id, fingerprint) DO NOTHING
    RETURNING id`,
);

/**
 * Keyed hashes of the content, under the ring's current key first. A report that is understood is the same in
 * any order of fields and with its defaults left out; any other only byte for byte.
 */
function fingerprintReports(
  ring: KeyRing,
  { body, transaction }: ReportedMessage,
): [current: Buffer, ...others: Buffer[]] {
  // Earlier releases did not keep the payment's id.
  const { whole } = transaction;
  const content = whole === null ? body : JSON.stringify({ ...whole, networkPaymentId: undefined });
  const [current, ...others] = ring.derive('network-messages');
  const under = (key: typeof current) => createHmac('sha256', key).update(content).digest();
  return [under(current), ...others.map(under)];
}

/** A kept message, and what it reports. */
export type LockedMessage = Row<
  'network_message',
  'id' | 'network' | 'network_card_id' | 'status' | 'reason' | 'transaction_id'
> & {
  reported: ReportedTransaction;
};

/**
 * Locks a message for the transaction. @returns null if there is none. @throws Error if its key is not in the
 * ring
 */
export async function lockMessage(
  tx: Transactor,
  ring: KeyRing,
  messageId: string,
): Promise<LockedMessage | null> {
  const [row] = await lock(tx, { messageId });
  if (row === undefined) return null;
  const { body, ...message } = row;
  return { ...message, reported: openReport(ring, messageId, body) };
}

const lock = writeStatement((db, { messageId }: { messageId: string }) =>
  db
    .selectFrom('network_message')
    .select(['id', 'network', 'network_card_id', 'status', 'reason', 'transaction_id', 'body'])
    .where('id', '=', messageId)
    .forNoKeyUpdate(),
);

/** What a sealed message reports. @throws Error if its key is not in the ring */
export function openReport(ring: KeyRing, messageId: string, body: Buffer): ReportedTransaction {
  const reported = readReport(parseJson(ring.openBytes(body, messageContext(messageId))));
  if (reported === null)
    throw new Error(`${messageId} has no networkTransactionId, so it should not have been kept`);
  return reported;
}

/** Ends a message: it is booked as this transaction, or dismissed. The transaction holds its row. */
export async function endMessage(tx: Transactor, id: string, transactionId: string | null): Promise<void> {
  const status = transactionId === null ? 'dismissed' : 'booked';
  await end(tx, { id, status, transactionId });
}

/** Forgets a message whose content is recorded elsewhere now. */
export async function forgetMessage(tx: Transactor, id: string): Promise<void> {
  await forget(tx, { id });
}

const forget = writeStatement((db, { id }: { id: string }) =>
  db.deleteFrom('network_message').where('id', '=', id),
);

type Ended = { id: string; status: NetworkMessageStatus; transactionId: string | null };

const end = writeStatement((db, { id, status, transactionId }: Ended) =>
  db
    .updateTable('network_message')
    .set({ status, transaction_id: transactionId, ended_at: sql`clock_timestamp()` })
    .where('id', '=', id),
);

const PRUNED_AFTER = sql<string>`now() - interval '90 days'`;

/** Deletes messages 90 days after they were booked or dismissed. @returns how many, at most `limit` */
export async function pruneMessages(orm: Orm, limit: number): Promise<number> {
  return (await prune(orm, { limit })).length;
}

const prune = autocommitStatement((db, { limit }: { limit: number }) =>
  db
    .deleteFrom('network_message')
    .where('id', 'in', ({ selectFrom }) =>
      selectFrom('network_message')
        .select('id')
        .where('status', '<>', sql.lit<'waiting'>('waiting'))
        .where('ended_at', '<', PRUNED_AFTER)
        .orderBy('ended_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returning('id'),
);
