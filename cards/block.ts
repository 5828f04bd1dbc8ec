import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/mode.ts';
import { MAX_AMOUNT_CENTS } from '../domain/money.ts';
import { readBalance, readCardBalance } from '../ledger/balances.ts';
import { of, TRANSFER_COLUMNS } from '../platform/db/columns.ts';
import { readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { CommandContext, OpenCommand } from '../requests/command-context.ts';
import { watchEnded } from './late-answers.ts';
import { lockCard } from './lock-card.ts';
import { releaseBalance } from './release-balance.ts';
import type { CardRow } from './resource.ts';
import { voidTransfers } from './transfers/end.ts';
import { transferRefusal } from './transfers/rules.ts';
import { lockUsage, uncountBlocked } from './usage.ts';

/**
 * Makes the changes of a block other than the status itself (docs/partners/card-status.md): moves the card's
 * balance to the prepaid balance, fails its pending top-ups, and stops counting it as open. It runs in the
 * caller's transaction, which holds the locks of {@link lockPendingTopUps} and the card's.
 * @param card the row after the block
 * @returns the other claims that got a response
 */
export async function releaseBlockedCard(command: OpenCommand, card: CardRow): Promise<string[]> {
  const { tx } = command;
  await uncountOpenCard(tx, { partnerId: card.partner_id, mode: card.mode });
  await releaseBalance(tx, card, 'release');
  return failPendingTopUps(command, card);
}

const uncountOpenCard = writeStatement((_, { partnerId, mode }: Tenant) =>
  uncountBlocked(sql`(SELECT ${partnerId}::text AS partner_id, ${mode}::text AS mode)`),
);

/**
 * Why a card can't be blocked. It is checked before the network is asked, because the card's balance must
 * have a place to go once the network has blocked it.
 */
export async function blockRefusal(tx: Transactor, card: CardRow): Promise<ApiError | null> {
  const { totalCents } = await readBalance(tx, card.partner_id, card.mode);
  const tenant = { partnerId: card.partner_id, mode: card.mode };
  const { balanceCents, heldCents } = await readCardBalance(tx, tenant, card.id);
  const fits = BigInt(totalCents) + BigInt(balanceCents - heldCents) <= BigInt(MAX_AMOUNT_CENTS);
  return fits ? null : releaseNotPossible();
}

/** The prepaid balance has no room for the card's balance: 409 `invalid_state`. */
export function releaseNotPossible(): ApiError {
  return new ApiError('invalid_state', {
    message:
      `Blocking the card would release its balance and take yours above the maximum of ${MAX_AMOUNT_CENTS} cents. ` +
      'Freeze the card instead, and contact us.',
  });
}

/**
 * Takes the locks that {@link failPendingTopUps} needs and that come before the card in the order of locks:
 * the account's usage, so that no top-up can begin, and the claims of the pending ones. The caller locks the
 * card next.
 */
export async function lockPendingTopUps(
  tx: Transactor,
  { partnerId, mode }: Tenant,
  cardId: string,
): Promise<void> {
  await lockUsage(tx, { partnerId, mode });
  // In a separate statement, because waiting for a lock does not refresh the snapshot of its own statement.
  await lockClaims(tx, { partnerId, mode, cardId, limit: null });
}

const lockClaims = writeStatement(
  (db, { partnerId, mode, cardId, limit }: Tenant & { cardId: string; limit: number | null }) =>
    db
      .selectFrom('idempotency_claim')
      .select('id')
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('id', 'in', ({ selectFrom }) =>
        selectFrom('card_transfer')
          .select('claim_id')
          .where('partner_id', '=', partnerId)
          .where('mode', '=', mode)
          .where('card_id', '=', cardId)
          .where('direction', '=', sql.lit<'topup'>('topup'))
          .where('status', '=', sql.lit<'pending'>('pending'))
          .orderBy('claim_id')
          .limit(sql<number>`${limit}`),
      )
      .orderBy('id')
      .forNoKeyUpdate(),
);

/**
 * Ends pending top-ups of a card that the network has blocked until so few are left that the block itself can
 * end them, each batch in a transaction of its own. Until then, the card is as it was, and new ones can begin.
 * @param claimId of a change that the network has applied; if it is not a block, nothing happens
 * @param atOnce how many end in one transaction, which the account's other operations wait for
 * @returns the claims that got a response, as with {@link failPendingTopUps}
 */
export async function failMostTopUps(
  { orm, ring }: CommandContext,
  claimId: string,
  atOnce = 500,
): Promise<string[]> {
  const answered: string[] = [];
  for (;;) {
    const [blocked] = await cardWithMany(orm.em.fork(), { claimId, count: atOnce });
    if (blocked === undefined) return answered;
    const { card_id: cardId, partner_id: partnerId, mode } = blocked;
    const batch = await transaction(orm, async (tx) => {
      await lockUsage(tx, { partnerId, mode });
      const claims = await lockClaims(tx, { partnerId, mode, cardId, limit: atOnce });
      const card = await lockCard(tx, { partnerId, mode }, cardId);
      if (card === undefined) throw new Error(`the card ${cardId} of ${claimId} is gone`);
      const claimIds = claims.map(({ id }) => id);
      return failTopUps({ tx, ring }, card, await lockTopUps(tx, { partnerId, mode, cardId, claimIds }));
    });
    answered.push(...batch);
  }
}

const cardWithMany = readStatement(
  (db, { claimId, count }: { claimId: string; count: number }) =>
    db
      .selectFrom('idempotency_claim as c')
      .innerJoin('card as k', 'k.id', 'c.card_id')
      .innerJoin('card_transfer as t', 't.card_id', 'k.id')
      .select(['k.id as card_id', 'k.partner_id', 'k.mode'])
      .where('c.id', '=', claimId)
      .whereRef('k.status_change_claim_id', '=', 'c.id')
      .where('c.operation', '=', 'block_card')
      .where('t.claim_id', 'is not', null)
      .where('t.direction', '=', sql.lit<'topup'>('topup'))
      .where('t.status', '=', sql.lit<'pending'>('pending'))
      .limit(sql.lit(1))
      .offset(count),
  { acrossTenants: 'id' },
);

/**
 * Ends every pending top-up of a blocked card: it fails with `card_blocked`, and its hold is released. If its
 * claim has no response yet, the top-up is refused with 409 instead and leaves nothing behind.
 * @param card the row after the block; responses and events have the card's balance from the ledger
 * @returns the claims that got a response, so that waiting requests can be notified after the commit
 */
export async function failPendingTopUps(command: OpenCommand, card: CardRow): Promise<string[]> {
  const { id: cardId, partner_id: partnerId, mode } = card;
  return failTopUps(command, card, await lockTopUps(command.tx, { partnerId, mode, cardId, claimIds: null }));
}

async function failTopUps(
  command: OpenCommand,
  card: CardRow,
  pending: Awaited<ReturnType<typeof lockTopUps>>,
): Promise<string[]> {
  if (pending.length === 0) return [];
  const refusal = transferRefusal('topup', 'blocked') as ApiError;
  const topUps = pending.map(({ claim_id: claimId, request_id: requestId, answered, ...transfer }) => {
    return { claimId, requestId, answered, transfer };
  });
  await voidTransfers(command, card, topUps, { failure: 'card_blocked', refusal });
  // The network has not said no: it may still load the card.
  if (card.mode === 'live') {
    await watchEnded(
      command.tx,
      topUps.map(({ transfer }) => ({ ...transfer, kind: 'topup' })),
    );
  }
  return topUps.filter(({ answered }) => !answered).map(({ claimId }) => claimId);
}

const lockTopUps = writeStatement(
  (db, { partnerId, mode, cardId, claimIds }: Tenant & { cardId: string; claimIds: string[] | null }) =>
    db
      .selectFrom('card_transfer as t')
      .innerJoin('idempotency_claim as c', (join) =>
        join
          .onRef('c.id', '=', 't.claim_id')
          .onRef('c.partner_id', '=', 't.partner_id')
          .onRef('c.mode', '=', 't.mode'),
      )
      .select(of('t', TRANSFER_COLUMNS))
      .select([
        'c.id as claim_id',
        'c.request_id',
        sql<boolean>`c.response_status IS NOT NULL`.as('answered'),
      ])
      .where('t.partner_id', '=', partnerId)
      .where('t.mode', '=', mode)
      .where('t.card_id', '=', cardId)
      .where('t.direction', '=', sql.lit<'topup'>('topup'))
      .where('t.status', '=', sql.lit<'pending'>('pending'))
      .where(sql<boolean>`(${claimIds}::text[] IS NULL OR t.claim_id = ANY (${claimIds}))`)
      .orderBy('t.id')
      .forNoKeyUpdate('t'),
);
