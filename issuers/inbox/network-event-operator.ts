import { sql } from 'kysely';
import { NetworkId } from '../../domain/fields.ts';
import { parseJson } from '../../domain/parse-json.ts';
import { Refusal } from '../../domain/refusal.ts';
import { argument, flag, list, type Noun, oneOf, reason, verb } from '../../operator/verbs.ts';
import { notifyNetworkInbox } from '../../platform/db/notifications.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../../requests/operator-context.ts';
import { makeDue, stateContext } from './inbox.ts';
import { sendVerb } from './send-operator.ts';
import { type WaitingElement, WHY_WAITING, type WhyWaiting } from './tables.ts';

const ID = argument("the network's id of the payment or the transfer", NetworkId);

export const networkEventNoun: Noun = {
  list: list({
    about: 'what has changed at the card network and waits to be looked at or booked, the oldest first',
    takes: {
      reason: flag(
        '<reason>',
        `only what waits because of this: ${WHY_WAITING.join(', ')}`,
        oneOf(WHY_WAITING),
      ),
    },
    examples: ['', '--reason card_unknown'],
    columns: 'created id kind reason attempts network network_card_id',
    read: readWaiting,
    note: 'See one with "operator network-event show ID".',
    none: 'Nothing waits.',
  }),

  show: verb({
    about: 'what is known of something that waits, with the state that the network has sent of it',
    takes: { id: ID },
    examples: ['8b1e…'],
    async run({ id }, { session }) {
      const { orm, ring } = await session.withKeys();
      const { body, ...row } = await readOne(orm, id);
      return { value: { ...row, state: body && parseJson(ring.openBytes(body, stateContext(id))) } };
    },
  }),

  retry: verb({
    about: 'try one again now',
    takes: { id: ID },
    examples: ['8b1e…'],
    async run({ id }, { session }) {
      const orm = await session.orm();
      const due = await transaction(orm, (tx) => makeDue(tx, { id }));
      if (due.length === 0) throw nothingWaits();
      await notifyNetworkInbox(orm);
      return { value: { id }, note: 'A worker looks at it within seconds.' };
    },
  }),

  dismiss: verb({
    about:
      'record that something that waits needs nothing more; if the network tells more of it, it is looked at again',
    takes: { id: ID, reason: reason('how you know, for the audit log') },
    examples: ['8b1e… --reason "not our card, ticket 4711"'],
    async run({ id, reason }, { session }) {
      await dismissObject(await session.operator(), id, reason);
      return { value: { id, status: 'dismissed' } };
    },
  }),

  send: sendVerb,
};

const nothingWaits = (): Refusal =>
  new Refusal(
    'Nothing with this id waits: run "operator network-event list". What was booked of it is done.',
  );

interface InboxRow {
  id: string;
  network: string;
  kind: 'payment' | 'transfer';
  reason: WhyWaiting | null;
  network_card_id: string | null;
  elements: WaitingElement[];
  attempts: number;
  created: string;
}

const WAITING = sql`SELECT id, network, kind, reason, network_card_id, elements, attempts, created_at AS created`;

async function readWaiting(
  orm: Orm,
  { reason, limit }: { reason: WhyWaiting | null; limit: number },
): Promise<InboxRow[]> {
  return (await oldest(orm.em.fork(), { reason, limit })).map(present);
}

const oldest = readStatement(
  (_, { reason, limit }: { reason: WhyWaiting | null; limit: number }) => sql<InboxRow>`
    ${WAITING} FROM network_inbox WHERE ${reason}::text IS NULL OR reason = ${reason}
    ORDER BY created_at, id LIMIT ${limit}`,
);

/** @throws Refusal if nothing with this id waits */
async function readOne(orm: Orm, id: string): Promise<InboxRow & { body: Buffer | null }> {
  const [row] = await withId(orm.em.fork(), { id });
  if (row === undefined) throw nothingWaits();
  return { ...present(row), body: row.body };
}

const withId = readStatement(
  (_, { id }: { id: string }) => sql<InboxRow & { body: Buffer | null }>`
    ${WAITING}, body FROM network_inbox WHERE id = ${id}`,
);

const present = <Row extends InboxRow>(row: Row): Row => ({
  ...row,
  created: new Date(row.created).toISOString(),
});

/**
 * Records an operator's decision that something that waits needs nothing more.
 * @throws Refusal if nothing with this id waits
 */
export function dismissObject({ orm, actor }: Operator, id: string, reason: string): Promise<void> {
  return transaction(orm, async (tx) => {
    const [dismissed] = await forget(tx, { id });
    if (dismissed === undefined) throw nothingWaits();
    await answerWaiting(tx, { id });
    const { network, kind, reason: whyWaiting, network_card_id: networkCardId } = dismissed;
    const detail = { network, kind, whyWaiting, networkCardId, reason };
    recordAudit(tx, { actor, action: 'network-event.dismiss', subject: id, detail });
  });
}

const forget = writeStatement((db, { id }: { id: string }) =>
  db
    .deleteFrom('network_inbox')
    .where('id', '=', id)
    .returning(['network', 'kind', 'reason', 'network_card_id']),
);

// What the simulated network has said of it is not taken any more.
const answerWaiting = writeStatement(
  (_, { id }: { id: string }) => sql`
    UPDATE simulated_message
    SET answer = '{"declineReason": null, "authorizationId": null, "transactionId": null}'
    WHERE payment_id = ${id} AND answer IS NULL`,
);
