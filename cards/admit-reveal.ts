import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import type { CardStatus } from '../domain/card-status.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { newId } from '../platform/crypto/new-id.ts';
import { CARD_COLUMNS } from '../platform/db/columns.ts';
import type { Orm } from '../platform/db/orm.ts';
import {
  autocommitStatement,
  type Reader,
  readStatement,
  type Transactor,
  tenantStatement,
  writeStatement,
} from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { isGivenByHand } from './network-card.ts';
import type { CardRow } from './resource.ts';
import { lockUsage } from './usage.ts';

export interface RevealAttempt extends Tenant {
  cardId: string;
  apiKeyId: string;
  requestId: string;
  clientAddress: string;
  /** The link that is opened; undefined without one. */
  linkId?: string;
}

/** A card whose details may be requested now. */
export type AdmittedCard = CardRow & { network_card_id: string };

/**
 * Lets one reveal through and counts it (docs/decisions/reveals-are-no-workflow.md), whatever the network
 * then says. Once this has returned, the attempt is on record. One that it refuses is recorded by {@link
 * recordRefusedReveal}.
 * @throws ApiError `secure_details_disabled`, `card_not_found`, `invalid_state`, `reveal_limit_reached`,
 *   `reveal_link_used`. Any other error means that nothing could be counted: show no card.
 */
export function admitReveal({ orm }: { orm: Orm }, attempt: RevealAttempt): Promise<AdmittedCard> {
  return transaction(orm, async (tx) => {
    await requireEnabled(tx, attempt.partnerId);
    const card = await readRevealableCard(tx, attempt);
    await takeTurn(tx, attempt);
    if (attempt.linkId !== undefined) await spendLink(tx, attempt, attempt.linkId);
    await insertReveal(tx, { ...attempt, id: newId('rvl') });
    return card;
  });
}

/**
 * Takes a link, once: its card's lock lets one of several through.
 * @throws ApiError `reveal_link_used`, `invalid_state` if the card has changed meanwhile
 */
async function spendLink(tx: Transactor, attempt: RevealAttempt, linkId: string): Promise<void> {
  const { partnerId, mode, cardId } = attempt;
  await lockCard(tx, { partnerId, mode, cardId });
  await readRevealableCard(tx, attempt);
  const spent = await spend(tx, { partnerId, mode, linkId });
  if (spent.length === 0) throw new ApiError('reveal_link_used');
}

const lockCard = writeStatement((db, { partnerId, mode, cardId }: Tenant & { cardId: string }) =>
  db
    .selectFrom('card')
    .select('id')
    .where('id', '=', cardId)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .forNoKeyUpdate(),
);

const spend = writeStatement(
  (_, { partnerId, mode, linkId }: Tenant & { linkId: string }) => sql<{ id: string }>`
  UPDATE reveal_link SET opened_at = now()
  WHERE id = ${linkId} AND partner_id = ${partnerId} AND mode = ${mode} AND opened_at IS NULL AND expires_at > now()
  RETURNING id`,
);

const insertReveal = writeStatement((db, reveal: RevealAttempt & { id: string }) =>
  db.insertInto('card_reveal').values({
    id: reveal.id,
    partner_id: reveal.partnerId,
    mode: reveal.mode,
    card_id: reveal.cardId,
    api_key_id: reveal.apiKeyId,
    request_id: reveal.requestId,
    client_address: reveal.clientAddress,
  }),
);

/** Refusals of one account and mode recorded in a minute. A flood of them must not fill the audit log. */
const MAX_RECORDED_PER_MINUTE = 60;

/**
 * Records a refused reveal for the audit log (docs/operator.md, "Who did it"); those of a flood only in
 * part.
 */
export async function recordRefusedReveal(
  { orm }: { orm: Orm },
  { partnerId, mode, cardId, apiKeyId, requestId, clientAddress }: RevealAttempt,
  reason: string,
): Promise<void> {
  await insertRefusal(orm, {
    id: newId('rvl'),
    partnerId,
    mode,
    apiKeyId,
    requestId,
    clientAddress,
    reason,
    cardId: isId('card', cardId) ? cardId : null,
  });
}

type Refusal = Omit<RevealAttempt, 'cardId'> & { id: string; cardId: string | null; reason: string };

const insertRefusal = autocommitStatement(
  (_, refusal: Refusal) => sql`
    INSERT INTO refused_reveal (id, partner_id, mode, card_id, api_key_id, request_id, client_address, reason)
    SELECT ${refusal.id}, ${refusal.partnerId}, ${refusal.mode}, ${refusal.cardId}, ${refusal.apiKeyId},
      ${refusal.requestId}, ${refusal.clientAddress}, ${refusal.reason}
    WHERE (SELECT count(*) FROM refused_reveal
      WHERE partner_id = ${refusal.partnerId} AND mode = ${refusal.mode}
        AND created_at > clock_timestamp() - interval '1 minute') < ${sql.lit(MAX_RECORDED_PER_MINUTE)}`,
);

/** The switch is read each time, so that turning the feature off takes effect at once. */
export async function requireEnabled(tx: Reader, partnerId: string): Promise<void> {
  const [partner] = await selectFeature(tx, { partnerId });
  if (partner?.enabled !== true) throw new ApiError('secure_details_disabled');
}

const selectFeature = readStatement((db, { partnerId }: { partnerId: string }) =>
  db.selectFrom('partner').select('secure_details_enabled as enabled').where('id', '=', partnerId),
);

async function readRevealableCard(
  tx: Reader,
  { partnerId, mode, cardId }: RevealAttempt,
): Promise<AdmittedCard> {
  const [card] = isId('card', cardId) ? await selectCard(tx, { partnerId, mode }, { cardId }) : [];
  if (card === undefined) throw new ApiError('card_not_found');
  if (card.status !== 'active' && card.status !== 'frozen') throw notRevealable(card.status);
  // A wrong one may be the card of another account.
  if (isGivenByHand(card)) throw notConfirmed();
  // The table has it that every card in use has the network's id.
  return card as AdmittedCard;
}

export const notRevealable = (status: CardStatus): ApiError =>
  new ApiError('invalid_state', {
    message: `The card is ${status}. Only active and frozen cards have secure details.`,
  });

const notConfirmed = (): ApiError =>
  new ApiError('invalid_state', {
    message:
      'We are finding out from the card network which of its cards this is. Until then, its details can not be shown, ' +
      'and nothing was counted. Try again in a few minutes. If that does not help, contact us.',
  });

export const selectCard = tenantStatement((db, { partnerId, mode, cardId }: Tenant & { cardId: string }) =>
  db
    .selectFrom('card')
    .select(CARD_COLUMNS)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('id', '=', cardId),
);

/**
 * Locks the account's usage row, so that reveals are counted one after the other, then computes when the next
 * one is allowed: a minute after the third most recent, and 24 hours after the twentieth, in the account's
 * time. The rows are an audit log, too, and have the real time.
 */
async function takeTurn(tx: Transactor, { partnerId, mode }: Tenant): Promise<void> {
  const locked = await lockUsage(tx, { partnerId, mode });
  if (locked.length !== 1) throw new Error('an account has no usage row: nothing can be counted');
  const [wait] = await selectWait(tx, { partnerId, mode }, {});
  const seconds = wait?.seconds ?? 0;
  if (seconds > 0) throw new ApiError('reveal_limit_reached', { retryAfterSeconds: seconds });
}

const selectWait = tenantStatement((db, { partnerId, mode }: Tenant) =>
  db
    .selectFrom(({ selectFrom }) =>
      selectFrom('card_reveal')
        .select(['created_at', sql<number>`row_number() OVER (ORDER BY created_at DESC)`.as('nth')])
        .where('partner_id', '=', partnerId)
        .where('mode', '=', mode)
        .orderBy('created_at', 'desc')
        .limit(sql.lit(20))
        .as('recent'),
    )
    .select(
      sql<number | null>`ceil(extract(epoch FROM max(
        account_time(${partnerId}, ${mode}, created_at) + CASE nth WHEN 3 THEN interval '1 minute' ELSE interval '24 hours' END)
        - account_now(${partnerId}, ${mode})))::int`.as('seconds'),
    )
    .where('nth', 'in', [sql.lit(3), sql.lit(20)]),
);
