import { ApiError } from '../domain/api-error.ts';
import { type AuthorizationState, expiredState, reversedState } from '../domain/authorization.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { type KeyedResponse, respondOnce } from '../requests/respond-once.ts';
import { type AuthorizationRow, presentAuthorization } from './authorization-resource.ts';
import { requirePending } from './decide.ts';
import { holdPosting, releaseFromBlocked, toState, withState } from './holds.ts';
import { type AuthorizationTerms, lockTestAuthorization } from './terms.ts';
import { type ChangedAuthorization, respondWithChange } from './write-change.ts';

// A merchant gives back what it asked for, or lets it expire: what was held is free again, and on a blocked card it goes to
// the prepaid balance.

/** A pending authorization in a later state, which holds less. */
function giveBack(
  { card, balance, clock, prepaidCents }: Omit<AuthorizationTerms, 'feePlan'>,
  before: AuthorizationRow,
  state: AuthorizationState,
): ChangedAuthorization {
  const authorization = withState(before, state);
  const heldCents = balance.heldCents - Number(before.held_cents) + state.heldCents;
  const freed = { ...balance, heldCents };
  const release = releaseFromBlocked(card, before, freed, prepaidCents);
  const postings = [holdPosting(before, authorization), release?.posting];
  return {
    card,
    balance: { heldCents, balanceCents: balance.balanceCents - (release?.releasedCents ?? 0) },
    clock,
    authorization,
    transaction: null,
    postings: postings.filter((posting) => posting != null),
    events: ['card.authorization.updated'],
  };
}

/** Gives back a part of a pending authorization, at most what is left of it. */
export function reverse(
  terms: AuthorizationTerms,
  before: AuthorizationRow,
  amountCents: number,
): ChangedAuthorization {
  return giveBack(terms, before, reversedState(toState(before), amountCents));
}

/** Ends a pending authorization whose time is over. */
export function expire(
  terms: Omit<AuthorizationTerms, 'feePlan'>,
  before: AuthorizationRow,
): ChangedAuthorization {
  return giveBack(terms, before, expiredState(toState(before)));
}

/**
 * Reverses an authorization of a test card.
 * @param amountCents undefined for all that is left
 * @throws ApiError `authorization_not_found`, `idempotency_conflict`, `validation_failed` for more than is left; without an
 *   Idempotency-Key also `invalid_state`, which is otherwise a stored response
 */
export function reverseInTestMode(
  context: CommandContext,
  request: KeyedRequest,
  authorizationId: string,
  amountCents: number | undefined,
): Promise<KeyedResponse> {
  return respondOnce(context, request, async (tx) => {
    const command = { tx, ring: context.ring };
    const terms = await lockTestAuthorization(command, request, authorizationId);
    if ('replayed' in terms) return terms;
    const { authorization } = terms;
    requirePending(authorization);
    const leftCents = Number(authorization.held_cents);
    if (amountCents !== undefined && amountCents > leftCents) {
      throw ApiError.ofField('amount', `amount must be at most the ${leftCents} cents that are left`);
    }
    const change = reverse(terms, authorization, amountCents ?? leftCents);
    const body = JSON.stringify(presentAuthorization(change.authorization));
    return respondWithChange(command, request, change, { status: 200, body });
  });
}

/**
 * Lets an authorization of a test card expire before its time.
 * @throws ApiError `authorization_not_found`, `idempotency_conflict`; without an Idempotency-Key also `invalid_state`
 */
export function expireInTestMode(
  context: CommandContext,
  request: KeyedRequest,
  authorizationId: string,
): Promise<KeyedResponse> {
  return respondOnce(context, request, async (tx) => {
    const command = { tx, ring: context.ring };
    const terms = await lockTestAuthorization(command, request, authorizationId);
    if ('replayed' in terms) return terms;
    const { authorization } = terms;
    requirePending(authorization);
    const change = expire(terms, authorization);
    const body = JSON.stringify(presentAuthorization(change.authorization));
    return respondWithChange(command, request, change, { status: 200, body });
  });
}
