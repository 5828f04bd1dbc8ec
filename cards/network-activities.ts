import type { Logger } from 'pino';
import type { Decision, Verdict } from '../domain/decision.ts';
import {
  type CardNetwork,
  CardNetworkUnavailable,
  type LookUpAnswer,
  type TransferLookUpAnswer,
} from '../issuers/card-network.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { noteAsked, noteAsking } from '../requests/network-progress.ts';
import type { StoredResponse } from '../requests/response.ts';
import type { NetworkAnswer } from '../requests/rules.ts';
import type { NetworkEvidence } from './network-card.ts';

/** What the activities of an operation need that waits for the network. */
export interface OperationDependencies extends CommandContext {
  /** Live mode's network; null if none is configured, in which case no money is ever held for it. */
  liveNetwork: CardNetwork | null;
  /**
   * Called when a claim has its response, to notify waiting requests. Does not throw.
   * @param response the response, if this process has just stored it; null if it was stored earlier
   */
  answered(claimId: string, response: StoredResponse | null): void;
  logger: Logger;
  /** Who sent the workflow's newest signal with such an input; null if Temporal doesn't say. */
  signalSender(signal: string, isThis: (input: unknown) => boolean): Promise<string | null>;
  /** Called after the money is held, before the network is asked. Does not throw. */
  opened?(claimId: string): void;
}

/**
 * How an operation ended. `refused`: our rules refused it before the network was asked. `failed`: the
 * network's definite no, or an operator's decision. The reason is a code.
 */
export interface FundingEnd {
  outcome: 'issued' | 'succeeded' | 'failed' | 'refused';
  reason?: string;
}

/**
 * `accepted`: the network is working on it, and the request has been answered with 202. Otherwise, the
 * operation has ended.
 */
export type NetworkProgress = 'accepted' | FundingEnd;

/** The result of an operator's decision. */
export type Resolved = { over: true; end: FundingEnd } | Exclude<Verdict, { over: true }>;

/** Whether a signal's input is this decision. A signal can contain anything. */
export function isSameDecision(sent: unknown, { outcome, networkCardId }: Decision): boolean {
  const received = (sent ?? {}) as Partial<Record<keyof Decision, unknown>>;
  return received.outcome === outcome && (received.networkCardId ?? undefined) === networkCardId;
}

/** Live mode has no card network configured, but operations are pending at one. */
class NoCardNetwork extends Error {
  override readonly name = 'NoCardNetwork';
}

/** Live mode's network, for pending operations. @throws NoCardNetwork */
export function configured(network: CardNetwork | null): CardNetwork {
  if (network === null) {
    throw new NoCardNetwork(
      'operations are pending at the card network, but CARD_NETWORK is none: configure the network again',
    );
  }
  return network;
}

/**
 * After this long without an answer, it is noted that the network is being asked
 * (docs/partners/operations.md).
 */
const SILENCE_MS = 1_000;

/** What is noted of a problem. The issuer's part of it is a status and a code. */
const MAX_PROBLEM_LENGTH = 200;

interface Asking {
  claimId: string;
  /**
   * Whether nobody has asked before. Then a quick decision ends the operation within its request, and there
   * is nothing to note.
   */
  isFirst: boolean;
  nextAskMs: number;
  deadlineMs: number | null;
}

/**
 * Asks, and notes what comes of it on the claim's row, before anything is done about it. If the network is
 * silent for a while, it is noted that it is being asked. If the process dies in between, the next time is
 * noted.
 * @throws CardNetworkUnavailable if the network gives no definite answer.
 */
export async function askAndNote<Answer extends { status: string }>(
  orm: Orm,
  { claimId, isFirst, nextAskMs, deadlineMs }: Asking,
  ask: () => Promise<Answer>,
): Promise<Answer> {
  const startedAtMs = performance.now();
  const sinceMs = () => performance.now() - startedAtMs;
  let counting = Promise.resolve(false);
  const silence = setTimeout(() => {
    // If this fails, the answer is counted instead.
    counting = noteAsking(orm, { claimId, deadlineMs, sinceMs: sinceMs() }).then(
      () => true,
      () => false,
    );
  }, SILENCE_MS);
  const note = async (answer: NetworkAnswer, problem: string | null) => {
    const isCounted = await counting;
    await noteAsked(orm, { claimId, deadlineMs, sinceMs: sinceMs(), answer, problem, isCounted, nextAskMs });
  };
  try {
    const given = await ask().finally(() => clearTimeout(silence));
    const answer = ANSWERS[given.status] ?? 'pending';
    if (answer === 'pending' || !isFirst || (await counting)) await note(answer, null);
    return given;
  } catch (error) {
    if (error instanceof CardNetworkUnavailable)
      await note('no_answer', error.message.slice(0, MAX_PROBLEM_LENGTH));
    throw error;
  }
}

/** The network's decisions, in partners' words. */
const ANSWERS: Record<string, NetworkAnswer> = {
  issued: 'succeeded',
  succeeded: 'succeeded',
  applied: 'succeeded',
  declined: 'declined',
  failed: 'declined',
  refused: 'declined',
};

/** The network's answer; null if it gives no definite one, or no network is configured. */
export async function heard<Answer>(
  network: CardNetwork | null,
  lookUp: (network: CardNetwork) => Promise<Answer>,
): Promise<Answer | null> {
  if (network === null) return null;
  try {
    return await lookUp(network);
  } catch (error) {
    if (error instanceof CardNetworkUnavailable) return null;
    throw error;
  }
}

/** What a look-up says about the card that the network created for a token. */
export function toEvidence(answer: LookUpAnswer | TransferLookUpAnswer | null): NetworkEvidence {
  if (answer === null) return 'away';
  if (answer.status === 'issued') return { card: answer };
  return { card: ('card' in answer && answer.card) || null };
}
