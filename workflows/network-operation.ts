import type { SearchAttributeUpdatePair } from '@temporalio/common';
import {
  CancellationScope,
  condition,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { IssuanceActivities, TransferActivities } from '../cards/activities.ts';
import type { FundingEnd, NetworkProgress } from '../cards/network-activities.ts';
import type { Decision, IssuanceDecision, TransferDecision, WhyNot } from '../domain/decision.ts';
import type { TransferDirection } from '../domain/transfer.ts';
import { needsAttentionAttribute, outcomeAttribute } from '../platform/temporal/search-attributes.ts';
import { LOCAL_NETWORK_CALL, NETWORK_REQUEST, RETRIED_FOR_EVER, summarized } from './activity-options.ts';
import {
  type NetworkOperationInput,
  type NetworkOperationState,
  networkOperationState,
  networkResult,
  parseWorkflowId,
  resolveOperationSignal,
} from './messages.ts';

const FIRST_POLL_MS = 1_000;
const MAX_POLL_MS = 3_600_000;
/** After the deadline. At 16 events per poll, it takes a history 8 years to fill up. */
const MAX_OVERDUE_POLL_MS = 86_400_000;

type Kind = 'card' | TransferDirection;

/** What an operator can decide on, the network's yes and its no, and the wording in the Temporal UI. */
const WORDS = {
  card: {
    outcomes: ['issued', 'failed'],
    first: 'hold the money and ask the network for the card',
    done: 'issued the card',
    alsoToResolve:
      'If the network can\'t be reached to look up the card\'s id, add it: `{"outcome": "issued", "networkCardId": "…"}`, ' +
      'or `--network-card-id` on the command line.',
  },
  topup: {
    outcomes: ['succeeded', 'failed'],
    first: 'hold the money and ask the network to load the card',
    done: 'loaded the card',
    alsoToResolve: null,
  },
  withdrawal: {
    outcomes: ['succeeded', 'failed'],
    first: 'hold the money on the card and ask the network to take it off',
    done: 'took the money off the card',
    alsoToResolve: null,
  },
} as const;

type Activities = IssuanceActivities & TransferActivities;

const { requestIssuance, requestTransfer } = proxyActivities<Activities>(
  summarized(NETWORK_REQUEST, 'ask the network again'),
);
const { flagIssuanceOverdue, flagTransferOverdue } = proxyActivities<Activities>(
  summarized(RETRIED_FOR_EVER, 'leave it to an operator, unless there is time left'),
);
const { applyIssuanceResolution, applyTransferResolution } = proxyActivities<Activities>(
  summarized(RETRIED_FOR_EVER, "apply the operator's decision"),
);

/** Issues one card. */
export const issueCard = (input: NetworkOperationInput): Promise<FundingEnd> => run('card', input);

/** Tops one card up, once. */
export const topUpCard = (input: NetworkOperationInput): Promise<FundingEnd> => run('topup', input);

/** Withdraws money from one card, once. */
export const withdrawFromCard = (input: NetworkOperationInput): Promise<FundingEnd> =>
  run('withdrawal', input);

/**
 * Holds an operation's money, asks the network, and posts the money on a yes or releases it on a definite no.
 * If there is no answer by the deadline, an operator decides. The workflow ignores cancellation, because
 * money is only released on a definite no.
 */
async function run(kind: Kind, { claimId, deadlineMs }: NetworkOperationInput): Promise<FundingEnd> {
  /** To show it. */
  let deadline = Date.now() + deadlineMs;
  let isTimeUp = false;
  let overdue = false;
  let hints = 0;
  let decision: Decision | undefined;
  let remark = '';
  const asked: Pick<NetworkOperationState, 'asked' | 'lastAnswer' | 'lastAskedAt' | 'nextAskAt'> = {
    asked: 0,
    lastAnswer: null,
    lastAskedAt: null,
    nextAskAt: null,
  };

  // Most operations end here, so what only the others need comes later: signal handlers, because signals wait
  // for one, and a non-cancellable scope, because a cancelled request is repeated.
  setCurrentDetails('Holding the money and asking the card network.');
  const first = hear(await firstRequest().catch(noAnswer));
  if (!isPending(first)) return shownEnd(first);
  listen();
  return shownEnd(await CancellationScope.nonCancellable(persist));

  function firstRequest(): Promise<NetworkProgress> {
    const options = summarized(LOCAL_NETWORK_CALL, WORDS[kind].first);
    const locally = proxyLocalActivities<Activities>(options);
    return kind === 'card' ? locally.requestIssuance(claimId) : locally.requestTransfer(claimId, kind);
  }

  /** Again, when the money is probably held already. */
  function request(nextAskMs: number): Promise<NetworkProgress> {
    return kind === 'card'
      ? requestIssuance(claimId, true, nextAskMs)
      : requestTransfer(claimId, kind, true, nextAskMs);
  }

  function hear(answer: NetworkProgress | 'no_answer'): NetworkProgress | 'no_answer' {
    asked.asked += 1;
    asked.lastAskedAt = now();
    if (isPending(answer)) asked.lastAnswer = answer;
    return answer;
  }

  function listen(): void {
    const onNetworkResult = () => {
      hints += 1;
    };
    setHandler(networkResult, onNetworkResult, { description: 'Asks the card network now. No input.' });
    const onResolve = (received: Partial<Decision> | null | undefined) => {
      // A signal can contain anything. Ignore it unless it is a decision.
      const outcome = WORDS[kind].outcomes.find((known) => known === received?.outcome);
      const networkCardId = received?.networkCardId ?? undefined;
      if (outcome === undefined || !(networkCardId === undefined || isNetworkId(networkCardId))) return;
      // The database decides whether it is too early: it knows when the operation began, and the
      // configuration.
      decision = { outcome, networkCardId };
    };
    setHandler(resolveOperationSignal, onResolve, {
      description: "An operator's decision, after the deadline. The current details show its input.",
    });
    const state = () => ({ ...asked, deadline: iso(deadline), overdue });
    setHandler(networkOperationState, state, {
      description: 'What the card network was asked, and until when.',
    });
  }

  /** Asks the network until the operation is over. */
  async function persist(): Promise<FundingEnd> {
    let heard = 0;
    startDeadline(deadlineMs);
    for (let pollMs = FIRST_POLL_MS; ; pollMs = nextPollMs(pollMs)) {
      // Again with each request: a worker whose deadline is longer takes the flag back.
      if (isTimeUp) await waitForOperator();
      const nextAskAt = Date.now() + pollMs;
      asked.nextAskAt = iso(overdue ? nextAskAt : Math.min(nextAskAt, deadline));
      show();
      const isWoken = () => hints > heard || decision !== undefined || (isTimeUp && !overdue);
      await condition(isWoken, pollMs, { summary: 'until the network is asked again' });
      if (decision !== undefined) {
        const end = await resolvedBy(decision);
        if (end !== null) return end;
      }
      heard = hints;
      const progress = hear(await request(nextPollMs(pollMs)).catch(noAnswer));
      if (!isPending(progress)) return progress;
    }
  }

  /**
   * The time is up once a timer has fired, which the history records. The clock must not decide: after a
   * local activity that took several workflow tasks, it shows another time when the history is replayed.
   */
  function startDeadline(remainingMs: number): void {
    isTimeUp = false;
    deadline = Date.now() + remainingMs;
    void sleep(remainingMs, { summary: 'until the deadline' }).then(() => {
      isTimeUp = true;
    });
  }

  function nextPollMs(pollMs: number): number {
    return Math.min(pollMs * 2, overdue ? MAX_OVERDUE_POLL_MS : MAX_POLL_MS);
  }

  /** @returns null if the decision could not be applied */
  async function resolvedBy(decided: Decision): Promise<FundingEnd | null> {
    decision = undefined;
    const verdict = await (kind === 'card'
      ? applyIssuanceResolution(claimId, decided as IssuanceDecision)
      : applyTransferResolution(claimId, kind, decided as TransferDecision));
    if (verdict.over) return verdict.end;
    remark = NOT_APPLIED[verdict.because];
    return null;
  }

  async function waitForOperator(): Promise<void> {
    const remainingMs = await (kind === 'card'
      ? flagIssuanceOverdue(claimId)
      : flagTransferOverdue(claimId, kind));
    const isOverdue = remainingMs === 0;
    if (!isOverdue) startDeadline(remainingMs);
    if (isOverdue === overdue) return;
    overdue = isOverdue;
    if (overdue) remark = '';
    upsertSearchAttributes([{ key: needsAttentionAttribute, value: overdue }]);
  }

  /** Paragraphs, as Markdown. */
  function show(): void {
    const { lastAnswer, nextAskAt } = asked;
    const times = `Asked ${asked.asked === 1 ? 'once' : `${asked.asked} times`}, next at ${nextAskAt}`;
    const state =
      lastAnswer === 'accepted'
        ? 'The card network has accepted the request but not decided yet.'
        : 'The card network did not answer the last request.';
    const parts = overdue
      ? [...toResolve(kind, iso(deadline)), `${state} ${times}.`]
      : [`${state} ${times}, deadline ${iso(deadline)}.`, ASK_NOW];
    if (remark !== '') parts.push(remark);
    setCurrentDetails(parts.join('\n\n'));
  }

  function shownEnd(end: FundingEnd): FundingEnd {
    setCurrentDetails(
      end.reason === undefined ? `Over: ${end.outcome}.` : `Over: ${end.outcome}, ${end.reason}.`,
    );
    const news: SearchAttributeUpdatePair[] = [];
    if (overdue) news.push({ key: needsAttentionAttribute, value: false });
    if (end.outcome === 'failed') news.push({ key: outcomeAttribute, value: 'failed' });
    if (news.length > 0) upsertSearchAttributes(news);
    return end;
  }
}

const ASK_NOW = 'To ask it now, send the signal `networkResult` (no input).';

/** What an operator has to do. */
function toResolve(kind: Kind, deadline: string): string[] {
  const {
    outcomes: [yes, no],
    done,
    alsoToResolve,
  } = WORDS[kind];
  const how = (outcome: string) =>
    `send the signal \`resolve\` with \`{"outcome": "${outcome}"}\`, or run ` +
    `\`npm run operator -- ${kind} resolve ${parseWorkflowId(workflowInfo().workflowId)} --${outcome} --reason "…"\`.`;
  const parts = [
    `**Waiting for an operator.** The card network had until ${deadline} to say whether it ${done}. Find out there.`,
    `- If it ${done}, ${how(yes)}\n- If not, ${how(no)}`,
  ];
  if (alsoToResolve !== null) parts.push(alsoToResolve);
  return parts;
}

const NOT_APPLIED: Record<WhyNot, string> = {
  too_early: 'A decision arrived before the deadline and changed nothing.',
  contradicts_the_record:
    'A decision arrived that differs from the recorded one and changed nothing: run `operator … resolve` again.',
  network_away:
    'An operator decided that the card is issued, but the network cannot be reached to look up its id: decide again once ' +
    'it can be reached, or add "networkCardId" to the decision.',
  unknown_to_network:
    'An operator decided that the card is issued, but the network does not know it: add "networkCardId" to the decision.',
  other_id_at_network:
    'An operator decided that the card is issued, but the network has it under a different id.',
  id_of_another_card:
    'An operator decided that the card is issued, but another card already has its "networkCardId": correct that card.',
  not_recordable:
    "A decision could not be recorded, because of an error of ours: see the worker's log, then decide again.",
};

const isNetworkId = (value: unknown): boolean =>
  typeof value === 'string' && /^[\x21-\x7e]{1,100}$/.test(value);

/** The activity's own retries are used up. There is still no answer, which is not a no. */
function noAnswer(): 'no_answer' {
  return 'no_answer';
}

const isPending = (progress: NetworkProgress | 'no_answer'): progress is 'accepted' | 'no_answer' =>
  progress === 'accepted' || progress === 'no_answer';

const iso = (timeMs: number): string => new Date(timeMs).toISOString();
const now = (): string => iso(Date.now());
