import { query } from '../../db/sql.ts';
import type { IssuedCard } from '../../domain/card.ts';
import { refusalOf, STATUS_CHANGES, type StatusChangeOperation } from '../../domain/card-status.ts';
import { siblingId } from '../../domain/ids.ts';
import { applyOperationWith } from '../../ledger/apply-operation.ts';
import { LedgerRejected } from '../../ledger/ledger-error.ts';
import { type CreateCardRequest, presentCard } from '../../resources/card.ts';
import type { TopUpRequest } from '../../resources/topup.ts';
import { releaseNotPossible, releaseOperation } from '../card-status/block-card.ts';
import type { CommandContext } from '../command-context.ts';
import { announcementOf, type News } from '../idempotency/announcement.ts';
import {
  answerOnce,
  type KeyedAnswer,
  type KeyedRequest,
  requireKept,
} from '../idempotency/answered-claim.ts';
import { uncountOpenCard } from './account-usage.ts';
import { draftCard } from './draft-card.ts';
import { draftTopUp } from './draft-top-up.ts';
import { insertFunding } from './insert-funding.ts';
import { issuanceNews } from './issuance-news.ts';
import { issuanceOperation } from './issuance-operation.ts';
import { newCard } from './new-card.ts';
import { newTopUp } from './new-top-up.ts';
import { lockTestTerms } from './test-terms.ts';
import { topUpNews } from './top-up-news.ts';
import { topUpOperation } from './top-up-operation.ts';
import { withIssued } from './with-issued.ts';
import { withLoaded } from './with-loaded.ts';

// Test mode's network is a function of ours that always says yes, so nothing is asked and nothing is waited for: each of
// these is one transaction of two statements, one that locks and reads, one that writes.

export interface TestIssuanceContext extends CommandContext {
  /** Test mode's network: arithmetic on the card's id, quick enough to stand in a transaction. */
  issueTestCard(cardId: string): Promise<IssuedCard>;
}

/**
 * Issues a test card.
 * @throws ApiError `idempotency_conflict`, `validation_failed` (amount and fees past the largest integer). Refusals are
 * answers.
 */
export function issueInTestMode(
  context: TestIssuanceContext,
  request: KeyedRequest,
  asked: CreateCardRequest,
): Promise<KeyedAnswer> {
  const { ring } = context;
  const cardId = siblingId('card', request.claimId);
  return answerOnce(context, request, async (tx) => {
    const locked = await lockTestTerms(tx, ring, request, { counts: true });
    if ('replayed' in locked) return locked;
    const draft = draftCard(cardId, { ...locked.terms, request: asked, products: locked.products });
    const card = withIssued(draft, await context.issueTestCard(cardId));
    const news = issuanceNews(card);
    await insertFunding(tx, newCard(card), issuanceOperation(card, 'single'), { ring, request, news });
    return answerOf(news);
  });
}

/**
 * Tops a test card up.
 * @throws ApiError `card_not_found`, `idempotency_conflict`, `validation_failed` (a sum past the largest integer).
 * Refusals are answers.
 */
export function topUpInTestMode(
  context: CommandContext,
  request: KeyedRequest,
  asked: TopUpRequest,
): Promise<KeyedAnswer> {
  const { ring } = context;
  const topUpId = siblingId('topup', request.claimId);
  return answerOnce(context, request, async (tx) => {
    const locked = await lockTestTerms(tx, ring, request, { counts: true });
    if ('replayed' in locked) return locked;
    const { card, cardCents } = locked;
    const draft = draftTopUp(
      topUpId,
      { ...locked.terms, request: asked, cardCents, arrivingCents: 0n },
      card,
    );
    const topUp = withLoaded(draft, cardCents + asked.amount);
    const news = topUpNews(topUp, card);
    await insertFunding(tx, newTopUp(topUp), topUpOperation(topUp, 'single'), { ring, request, news });
    return answerOf(news);
  });
}

/**
 * Freezes, unfreezes or blocks a test card; the card's row lock is the order of its changes.
 * @throws ApiError `card_not_found`, `idempotency_conflict`, and, without an Idempotency-Key, `invalid_state`. With one
 * the refusal is an answer.
 */
export function changeStatusInTestMode(
  context: CommandContext,
  request: KeyedRequest & { operation: StatusChangeOperation },
): Promise<KeyedAnswer> {
  const { ring } = context;
  const { operation } = request;
  const { to, event: type } = STATUS_CHANGES[operation];
  return answerOnce(context, request, async (tx) => {
    const locked = await lockTestTerms(tx, ring, request, { counts: to === 'blocked' });
    if ('replayed' in locked) return locked;
    const refusal = refusalOf(locked.card.status, operation);
    if (refusal !== null) throw refusal;

    const card = { ...locked.card, status: to };
    const resource = presentCard(card, to === 'blocked' ? 0 : locked.cardCents);
    const news: News = {
      ...{ type, mode: 'test', cardId: card.id, data: { card: resource } },
      answer: { status: 200, resource },
    };
    const announcement = announcementOf(ring, request, news, 3);
    const ctes = [
      'done AS (UPDATE card SET status = $2 WHERE id = $1 RETURNING partner_id, mode)',
      ...(to === 'blocked' ? [`uncounted AS (${uncountOpenCard})`] : []),
      ...announcement.ctes,
    ];
    const values = [card.id, to, ...announcement.values];
    if (to === 'blocked' && locked.cardCents > 0) {
      const release = releaseOperation(card, locked.cardCents);
      const reads = { kept: announcement.kept };
      const { moved, wrote } = await applyOperationWith(tx, release, { ctes, values, reads }).catch(
        (error: unknown) => {
          if (!(error instanceof LedgerRejected) || error.reason !== 'balance_out_of_range') throw error;
          throw releaseNotPossible();
        },
      );
      if (moved.outcome !== 'applied') throw new Error(`the release of ${card.id} is ${moved.outcome}`);
      requireKept(wrote.kept === true);
    } else {
      const sql = `WITH ${ctes.join(', ')} SELECT ${announcement.kept} AS kept`;
      const [wrote] = await query<{ kept: boolean }>(tx, sql, values);
      requireKept(wrote?.kept === true);
    }
    return answerOf(news);
  });
}

function answerOf({ answer: { status, resource } }: News): KeyedAnswer {
  return { replayed: false, response: { status, body: JSON.stringify(resource) } };
}
