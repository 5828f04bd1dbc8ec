import { sql } from 'kysely';
import type { Mode, Tenant } from '../domain/mode.ts';
import { Refusal, unknownId } from '../domain/refusal.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { autocommitStatement, readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type OperatorContext, recordAudit } from '../requests/operator-context.ts';
import { requestContext, responseContext } from '../requests/response.ts';
import type { Metadata } from './metadata-rules.ts';

interface Erasure {
  partnerId: string;
  mode: Mode;
  /** Stored responses and requests that had the data. */
  responsesBlanked: number;
  eventsBlanked: number;
  /** How many of those the partner had been sent before. */
  eventsSentBefore: number;
}

const BATCH = 500;

/**
 * Blanks a cardholder's names and e-mail address, and the card's metadata, in the card, its stored requests
 * and responses, and its events; money and ids stay. The card comes first, so nothing new is written with
 * them, and is marked, so that its partner can't store new ones. If the command dies, run it again: it goes
 * on with the rest.
 * @throws Refusal if there is no such card, or the network may still be asked for it with the name
 */
export async function eraseCardholder(
  context: OperatorContext,
  cardId: string,
  reason: string,
): Promise<Erasure> {
  const { orm, ring, actor } = context;
  const { partnerId, mode } = await transaction(orm, (tx) => blankCard(tx, actor, cardId, reason));

  let responsesBlanked = 0;
  for (const claim of await selectClaims(orm.em.fork(), { partnerId, mode, cardId })) {
    const request = blanked(ring, claim.request, requestContext(claim.id));
    const response = blanked(ring, claim.response_body, responseContext(claim.id));
    if (request !== null) await replaceRequest(orm, { id: claim.id, before: claim.request, after: request });
    if (response !== null)
      await replaceResponse(orm, { id: claim.id, before: claim.response_body, after: response });
    if (request !== null || response !== null) responsesBlanked += 1;
  }

  let eventsBlanked = 0;
  let eventsSentBefore = 0;
  for (let after: string | null = ''; after !== null; ) {
    const [page] = await blankEvents(orm, { cardId, after, batch: BATCH });
    after = page?.last_id ?? null;
    eventsBlanked += page?.blanked ?? 0;
    eventsSentBefore += page?.sent ?? 0;
  }
  return { partnerId, mode, responsesBlanked, eventsBlanked, eventsSentBefore };
}

async function blankCard(tx: Transactor, actor: string, cardId: string, reason: string): Promise<Tenant> {
  const [card] = await lockCard(tx, { cardId });
  if (card === undefined) throw unknownId('card', cardId, 'run "operator card list"');
  if (card.status === 'funding_pending') {
    throw new Refusal(
      `The issuance of ${cardId} is not over, and the network may be asked for it again with the cardholder's name: erase it ` +
        'once the card is active or has failed.',
    );
  }
  const { partner_id: partnerId, mode } = card;
  if (card.has_data || !card.is_marked) {
    await eraseCard(tx, { cardId });
    const detail = { partnerId, mode, reason };
    recordAudit(tx, { actor, action: 'partner.erase-cardholder', subject: cardId, detail });
  }
  return { partnerId, mode };
}

const lockCard = writeStatement(
  (db, { cardId }: { cardId: string }) =>
    db
      .selectFrom('card')
      .select(['partner_id', 'mode', 'status'])
      .select([
        sql<boolean>`num_nonnulls(cardholder_first_name, cardholder_last_name, email) > 0
        OR metadata <> '{}'`.as('has_data'),
        sql<boolean>`cardholder_erased_at IS NOT NULL`.as('is_marked'),
      ])
      .where('id', '=', cardId)
      .forNoKeyUpdate(),
  { acrossTenants: 'operator' },
);

const eraseCard = writeStatement(
  (db, { cardId }: { cardId: string }) =>
    db
      .updateTable('card')
      .set({
        cardholder_first_name: null,
        cardholder_last_name: null,
        email: null,
        metadata: sql<Metadata>`'{}'`,
        cardholder_erased_at: sql<string>`now()`,
      })
      .where('id', '=', cardId),
  { acrossTenants: 'operator' },
);

const selectClaims = readStatement((db, { partnerId, mode, cardId }: Tenant & { cardId: string }) =>
  db
    .selectFrom('idempotency_claim')
    .select(['id', 'request', 'response_body'])
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where(({ or, eb }) => or([eb('card_id', '=', cardId), eb('resource_id', '=', cardId)])),
);

// As blank_cardholder_events() in the database: a quote within a string has a backslash before it. The
// metadata comes first, because one of its keys may be called as one of the fields.
const METADATA = /"metadata":\{(?:"[^"\\]*(?:\\.[^"\\]*)*":"[^"\\]*(?:\\.[^"\\]*)*",?)*\}/g;
const FIELDS = /"(cardholder_first_name|cardholder_last_name|email)":"(?:[^"\\]|\\.)*"/g;

/** The value without the data, sealed again; null if it had none. */
function blanked(ring: KeyRing, sealed: Buffer | null, context: string): Buffer | null {
  if (sealed === null) return null;
  const text = ring.open(sealed, context);
  const without = text.replace(METADATA, '"metadata":{}').replace(FIELDS, '"$1":null');
  return without === text ? null : ring.seal(without, context);
}

type Replaced = { id: string; before: Buffer | null; after: Buffer };

const replaceRequest = autocommitStatement(
  (db, { id, before, after }: Replaced) =>
    db
      .updateTable('idempotency_claim')
      .set({ request: after })
      .where('id', '=', id)
      .where('request', '=', before),
  { acrossTenants: 'operator' },
);

const replaceResponse = autocommitStatement(
  (db, { id, before, after }: Replaced) =>
    db
      .updateTable('idempotency_claim')
      .set({ response_body: after })
      .where('id', '=', id)
      .where('response_body', '=', before),
  { acrossTenants: 'operator' },
);

const blankEvents = autocommitStatement(
  (_, { cardId, after, batch }: { cardId: string; after: string; batch: number }) =>
    sql<{
      last_id: string | null;
      blanked: number;
      sent: number;
    }>`SELECT last_id, blanked, sent FROM blank_cardholder_events(${cardId}, ${after}, ${batch})`,
);
