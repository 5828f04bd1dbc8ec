import type { KeyObject } from 'node:crypto';
import { sql } from 'kysely';
import type { NetworkCard } from '../../../domain/card.ts';
import type { SettableStatus } from '../../../domain/card-status.ts';
import type { Orm } from '../../../platform/db/orm.ts';
import { type Transactor, writeStatement } from '../../../platform/db/sql.ts';
import { transaction } from '../../../platform/db/transaction.ts';
import type {
  IssueCardRequest,
  LookUpAnswer,
  StatusChangeAnswer,
  StatusChangeRequest,
  TransferAsked,
  TransferLookUpAnswer,
} from '../../card-network.ts';
import { deriveCard } from '../../derived-cards.ts';
import type { OperationKind } from '../tables.ts';
import { type Behaviour, behaviourFor, DECLINED, SUCCESS } from './behaviours.ts';
import { lookUpIssuance, lookUpTransfer, readOperation } from './look-ups.ts';

/** The result of a request to act. `refused`: try again. `conflict`: the token belongs to another request. */
export type Taken<Answer> =
  | { status: 'refused' }
  | { status: 'conflict' }
  | { status: 'answered'; answer: Answer; answerIsLost: boolean };

/** Issues a card once per token, and returns the issuance's state. */
export function takeIssuance(
  orm: Orm,
  cardKey: KeyObject,
  { token, productCode, bin, amountCents }: Omit<IssueCardRequest, 'cardholderName'>,
): Promise<Taken<LookUpAnswer>> {
  return transaction(orm, async (tx) => {
    const behaviour = behaviourFor(amountCents);
    const request = { productCode, bin, amountCents };
    const taking = await takeOperation(tx, { token, kind: 'card.issuance', behaviour, request });
    if (taking === 'refused' || taking === 'conflict') return { status: taking };
    const isNew = taking === 'taken';
    if (isNew && behaviour.outcome === 'succeeded') {
      await insertCard(tx, { ...deriveCard(cardKey, token, bin), token });
    }
    const found = await lookUpIssuance(tx, token);
    // While an issuance is in progress, only a look-up shows its card.
    const answer: LookUpAnswer = found.status === 'accepted' ? { status: 'accepted' } : found;
    return { status: 'answered', answer, answerIsLost: isNew && behaviour.losesAnswer };
  });
}

/**
 * Moves money to or from a card once per token, and returns the transfer's state. Declined if the network has
 * no such card, or has blocked it. A withdrawal that was accepted before a block goes on: the money leaves
 * the card.
 */
export function takeTransfer(
  orm: Orm,
  { token, direction, networkCardId, amountCents }: TransferAsked,
): Promise<Taken<TransferLookUpAnswer>> {
  return transaction(orm, async (tx) => {
    const cardStatus = await lockCard(tx, networkCardId);
    const isOpen = cardStatus !== undefined && cardStatus !== 'blocked';
    const behaviour = isOpen ? behaviourFor(amountCents) : DECLINED;
    const request = { networkCardId, amountCents };
    const taking = await takeOperation(tx, { token, kind: `card.${direction}`, behaviour, request });
    if (taking === 'refused' || taking === 'conflict') return { status: taking };
    const answerIsLost = taking === 'taken' && behaviour.losesAnswer;
    return { status: 'answered', answer: await lookUpTransfer(tx, direction, token), answerIsLost };
  });
}

/**
 * Sets a card's status once per token: a change that was applied or refused stays so, whatever comes after
 * it. Refused if the network has no such card, or has blocked it and another status is requested.
 */
export function takeStatusChange(
  orm: Orm,
  { token, networkCardId, cardStatus }: StatusChangeRequest,
): Promise<Taken<StatusChangeAnswer>> {
  return transaction(orm, async (tx) => {
    const from = await lockCard(tx, networkCardId);
    const isAllowed = from !== undefined && (from !== 'blocked' || cardStatus === 'blocked');
    const behaviour = isAllowed ? SUCCESS : DECLINED;
    const request = { networkCardId, cardStatus };
    const taking = await takeOperation(tx, { token, kind: 'card.status', behaviour, request });
    if (taking === 'refused' || taking === 'conflict') return { status: taking };
    if (taking === 'taken' && isAllowed) {
      await setStatus(tx, { networkCardId, cardStatus });
      // No money may reach a blocked card.
      if (cardStatus === 'blocked') await failUnfinishedTopUps(tx, { networkCardId });
    }
    const { state } = await readOperation(tx, 'card.status', token);
    const answer: StatusChangeAnswer =
      state === 'succeeded' ? { status: 'applied' } : { status: 'refused', reason: 'refused_by_network' };
    return { status: 'answered', answer, answerIsLost: false };
  });
}

interface Operation {
  token: string;
  kind: OperationKind;
  /** What happens to the operation if the network accepts it now. */
  behaviour: Behaviour;
  /** Everything that has to be the same when the token is used again. Nothing personal. */
  request: Record<string, unknown>;
}

/**
 * Accepts an operation exactly once, even if it is requested repeatedly or concurrently: its token's row is
 * the lock. The caller writes the operation's effects in the same transaction.
 * @returns `taken`: by this call; `known`: by an earlier one; `refused`: try again; `conflict`: the token
 *   belongs to another request
 */
async function takeOperation(
  tx: Transactor,
  { token, kind, behaviour, request }: Operation,
): Promise<'taken' | 'known' | 'refused' | 'conflict'> {
  const [asked] = await countAttempt(tx, { token, kind, request });
  if (asked === undefined) return 'conflict';
  if (asked.taken) return 'known';
  if (asked.attempts <= behaviour.refusals) return 'refused';
  const { outcome, completesAfterMs, callbackDelaysMs } = behaviour;
  await setOutcome(tx, { token, outcome, completesAfterMs, callbackDelaysMs });
  return 'taken';
}

const countAttempt = writeStatement(
  (db, { token, kind, request }: Pick<Operation, 'token' | 'kind' | 'request'>) =>
    db
      .insertInto('simulated_network.operation')
      .values({ token, kind, request })
      .onConflict((conflict) =>
        conflict
          .column('token')
          .doUpdateSet({ attempts: sql<number>`operation.attempts + 1` })
          .whereRef('simulated_network.operation.kind', '=', 'excluded.kind')
          .whereRef('simulated_network.operation.request', '=', 'excluded.request'),
      )
      .returning(['attempts', sql<boolean>`taken_at IS NOT NULL`.as('taken')]),
);

/** Writes the operation's outcome, and a callback for each of the delays. */
const setOutcome = writeStatement(
  (db, values: Pick<Behaviour, 'outcome' | 'completesAfterMs' | 'callbackDelaysMs'> & { token: string }) =>
    db
      .with('clock', (cte) => cte.selectNoFrom(sql<string>`clock_timestamp()`.as('now')))
      .with('taken', (cte) =>
        cte
          .updateTable('simulated_network.operation')
          .from('clock')
          .set({
            outcome: values.outcome,
            taken_at: sql<string>`clock.now`,
            completes_at: sql<string>`clock.now + ${values.completesAfterMs}::integer * interval '1 millisecond'`,
          })
          .where('token', '=', values.token)
          .returning(['token', 'completes_at']),
      )
      .insertInto('simulated_network.callback')
      .columns(['token', 'due_at'])
      .expression(
        sql<{ token: string; due_at: string }>`
          SELECT token, completes_at + delay_ms * interval '1 millisecond'
          FROM taken, unnest(${values.callbackDelaysMs}::integer[]) AS delay_ms`,
      ),
);

const insertCard = writeStatement((db, card: NetworkCard & { token: string }) =>
  db.insertInto('simulated_network.card').values({
    network_card_id: card.networkCardId,
    token: card.token,
    last4: card.last4,
    exp_month: card.expMonth,
    exp_year: card.expYear,
  }),
);

/**
 * Locks a card until the transaction ends, so that operations on one card run one at a time. The card is
 * locked before any operation's row.
 * @returns its status; undefined if the network has no such card
 */
async function lockCard(tx: Transactor, networkCardId: string): Promise<SettableStatus | undefined> {
  const [card] = await findStatus(tx, { networkCardId });
  return card?.status;
}

const findStatus = writeStatement((db, { networkCardId }: { networkCardId: string }) =>
  db
    .selectFrom('simulated_network.card')
    .select('status')
    .where('network_card_id', '=', networkCardId)
    .forNoKeyUpdate(),
);

const setStatus = writeStatement(
  (db, { networkCardId, cardStatus }: Pick<StatusChangeRequest, 'networkCardId' | 'cardStatus'>) =>
    db
      .updateTable('simulated_network.card')
      .set({ status: cardStatus })
      .where('network_card_id', '=', networkCardId),
);

const failUnfinishedTopUps = writeStatement((db, { networkCardId }: { networkCardId: string }) =>
  db
    .updateTable('simulated_network.operation')
    .set({ outcome: 'failed', completes_at: sql<string>`clock_timestamp()` })
    .where('kind', '=', sql.lit<'card.topup'>('card.topup'))
    .where(sql`request ->> 'networkCardId'`, '=', networkCardId)
    .where('taken_at', 'is not', null)
    .where((eb) =>
      eb.or([eb('completes_at', 'is', null), eb('completes_at', '>', sql<string>`clock_timestamp()`)]),
    ),
);
