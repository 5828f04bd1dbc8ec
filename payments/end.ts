import { type AuthorizationState, expiredState, reversedState } from '../domain/authorization.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import { holdPosting, releaseFromBlocked, toState, withState } from './holds.ts';
import type { AuthorizationTerms } from './terms.ts';
import type { ChangedAuthorization } from './write-change.ts';

// A merchant gives back what it asked for, or lets it expire: what was held is free again, and on a blocked
// card it goes to the prepaid balance.

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
