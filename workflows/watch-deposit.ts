import {
  condition,
  continueAsNew,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { WatchDepositActivities, WatchedDeposit } from '../deposits/activities.ts';
import type { DepositDecision, WhyNotResolved } from '../domain/deposit.ts';
import { needsAttentionAttribute } from '../platform/temporal/search-attributes.ts';
import { LOCAL_STEP, RETRIED_FOR_EVER, summarized } from './activity-options.ts';
import {
  depositChanged,
  resolveDepositSignal,
  type SentDecision,
  type WatchDepositInput,
} from './messages.ts';

const { readDeposit } = proxyLocalActivities<WatchDepositActivities>(
  summarized(LOCAL_STEP, 'read the deposit'),
);
const { resolveDepositByHand } = proxyActivities<WatchDepositActivities>(
  summarized(RETRIED_FOR_EVER, "apply the operator's decision"),
);

/**
 * The workflow is signalled on every change; it also reads the row after this pause, in case a signal was
 * lost. The pause doubles each time nothing has changed.
 */
const FIRST_PAUSE_MS = 120_000;
const MAX_PAUSE_MS = 6 * 3_600_000;
/** Reading the row adds 7 events, and applying a decision 11. */
const MAX_READS = 100;

const OVER = ['confirmed', 'expired', 'returned'] as const satisfies WatchedDeposit['status'][];

/** The status of the deposit when the workflow ended. `deleted`: its row is gone. */
export interface DepositEnd {
  outcome: (typeof OVER)[number] | 'deleted';
  creditedUsd?: string;
}

/** More pending decisions than anybody sends on purpose. Further ones are dropped. */
const MAX_SENT_DECISIONS = 50;
const MAX_REASON = 1_000;

/**
 * Shows operators a deposit's state, from its row, and takes their decision on payments in review. It changes
 * nothing by itself: the scan finds payments and expires deposits. It ends when nothing more is expected; a
 * later payment starts it again.
 */
export async function watchDeposit({ depositId, continued }: WatchDepositInput): Promise<DepositEnd> {
  const decisions: SentDecision[] = continued?.told ?? [];
  let isChanged = false;
  let reads = 0;
  let version = continued?.version ?? null;
  let remark = continued?.remark ?? '';
  const onChanged = () => {
    isChanged = true;
  };
  setHandler(depositChanged, onChanged, { description: 'Reads the deposit now. No input.' });
  const onResolve = (sent: unknown) => {
    const decision = parseDecision(sent);
    // A decision without a version is about the version that is shown.
    if (decisions.length < MAX_SENT_DECISIONS)
      decisions.push({ decision, version: decision?.version ?? version });
  };
  setHandler(resolveDepositSignal, onResolve, {
    description: "An operator's decision on what is in review. The current details show its input.",
  });

  for (let pauseMs = FIRST_PAUSE_MS; ; ) {
    const decided = decisions.shift();
    if (decided !== undefined) remark = await carriedOut(decided);
    isChanged = false;
    // A run that continues as new reads without having looked: until the next run has, nobody notifies it
    // again. A signal would undo the end of this one, and a steady stream of them would keep it from ever
    // ending. Not the length of the history: right after a local activity it can differ when the history is
    // replayed.
    reads += 1;
    const isLastRead = reads >= MAX_READS;
    const deposit = await readDeposit(depositId, { hasLooked: !isLastRead });
    if (deposit === null) return { outcome: 'deleted' };
    pauseMs = deposit.version === version ? Math.min(pauseMs * 2, MAX_PAUSE_MS) : FIRST_PAUSE_MS;
    version = deposit.version;
    show(depositId, deposit, remark);

    // If a signal arrives before the server has recorded the end of the run, the end is undone and the signal
    // handled first.
    const isNews = () => isChanged || decisions.length > 0;
    if (isOver(deposit) && !isNews()) return { outcome: deposit.status, creditedUsd: deposit.creditedUsd };
    if (isLastRead)
      await continueAsNew<typeof watchDeposit>({
        depositId,
        continued: { version, remark, told: decisions },
      });
    if (isNews()) continue;
    const untilExpiryMs = Date.parse(deposit.expiresAt) - Date.now();
    const expires = isAwaited(deposit) && untilExpiryMs > 0;
    await condition(isNews, expires ? untilExpiryMs : pauseMs, {
      summary: expires ? 'until it can expire' : 'until it checks on its own',
    });
  }

  /** @returns what to show about a decision that was not carried out */
  async function carriedOut(decided: SentDecision): Promise<string> {
    const why = await whyNot(decided);
    return why === null
      ? ''
      : `A decision arrived at ${new Date().toISOString()} and changed nothing: ${why}`;
  }

  async function whyNot({ decision, version: decidedOn }: SentDecision): Promise<string | null> {
    if (decision === null) return NO_DECISION;
    if (decidedOn === null || decidedOn !== version) return NOT_CARRIED_OUT.changed_meanwhile;
    const verdict = await resolveDepositByHand(depositId, { ...decision, version: decidedOn });
    return verdict === null || verdict.resolved ? null : NOT_CARRIED_OUT[verdict.because];
  }
}

/** A signal can contain anything. @returns null if it is not a decision */
function parseDecision(sent: unknown): DepositDecision | null {
  const { outcome, reason, version } = (sent ?? {}) as Partial<Record<keyof DepositDecision, unknown>>;
  if (outcome !== 'credited' && outcome !== 'returned') return null;
  if (typeof reason !== 'string' || reason.length > MAX_REASON) return null;
  if (version === undefined) return { outcome, reason };
  return typeof version === 'number' ? { outcome, reason, version } : null;
}

const isAwaited = ({ status, isJudging }: WatchedDeposit): boolean =>
  status === 'awaiting_payment' && !isJudging;

/** Whether nothing more is expected. */
const isOver = (deposit: WatchedDeposit): deposit is WatchedDeposit & { status: (typeof OVER)[number] } =>
  !deposit.isJudging && OVER.some((status) => status === deposit.status);

function show(depositId: string, deposit: WatchedDeposit, remark: string): void {
  const needsAttention = deposit.review !== null;
  const shown = workflowInfo().typedSearchAttributes.get(needsAttentionAttribute) ?? false;
  if (needsAttention !== shown)
    upsertSearchAttributes([{ key: needsAttentionAttribute, value: needsAttention }]);
  // A run that continues another one has no static summary of its own.
  const title = `Deposit ${depositId} of ${deposit.amountUsdt} USDT on ${deposit.network}.`;
  const parts = [title, ...describeState(depositId, deposit)];
  if (remark !== '') parts.push(remark);
  setCurrentDetails(parts.join('\n\n'));
}

/** Paragraphs, as Markdown. */
function describeState(depositId: string, deposit: WatchedDeposit): string[] {
  const { status, address, network, amountUsdt, expiresAt, creditedUsd, seenBlock, review } = deposit;
  if (review !== null) return describeReview(depositId, deposit, review);
  if (deposit.isJudging) return ['A payment was found and is about to be credited or put in review.'];
  switch (status) {
    case 'awaiting_payment':
      return Date.parse(expiresAt) > Date.now()
        ? [
            `Waiting for one payment of exactly ${amountUsdt} USDT to ${address} (${network}) until ${expiresAt}.`,
          ]
        : [
            `No payment has been found, and the deadline ${expiresAt} has passed. The chain has been scanned ` +
              `${readUntil(deposit)}; the deposit expires once the scan passes its deadline. If it does not move, see ` +
              '`npm run operator -- tron status`.',
          ];
    case 'confirming':
      return [
        `A payment was seen in block ${seenBlock}. It counts once that block is solid and enough nodes show it; if that takes ` +
          'long, `npm run operator -- attention list` has what each node says.',
      ];
    case 'confirmed':
      return [`Confirmed: ${creditedUsd} USD were credited. ${LATER_PAYMENTS}`];
    case 'expired':
      return [`Expired at ${expiresAt} without a payment. ${LATER_PAYMENTS}`];
    case 'returned':
      return [`All payments were sent back. ${LATER_PAYMENTS}`];
    case 'needs_review':
      return ['Waiting for review.'];
  }
}

const readUntil = ({ scannedUntil }: WatchedDeposit): string =>
  scannedUntil === null ? 'not at all yet' : `up to ${scannedUntil}`;

const LATER_PAYMENTS = 'The scan still finds later payments, and they start this workflow again.';

function describeReview(
  depositId: string,
  { amountUsdt, version }: WatchedDeposit,
  { count, payments, creditableUsd, amountUsdt: inReviewUsdt }: NonNullable<WatchedDeposit['review']>,
): string[] {
  const lines = payments.map(
    (payment) =>
      `- ${payment.amountUsdt} USDT, transaction ${payment.txHash} in block ${payment.block}: ${payment.why}`,
  );
  if (count > payments.length) lines.push(`- and ${count - payments.length} more`);
  return [
    `**Waiting for an operator.** ${amountUsdt} USDT were expected, and ${inReviewUsdt} USDT are in review:`,
    lines.join('\n'),
    'Check on the chain that these payments exist. Then, to add ' +
      `${creditableUsd} USD to the balance, send the signal \`resolve\` with ` +
      `\`{"outcome": "credited", "reason": "…", "version": ${version}}\`. If you have sent them back, or they should stay ` +
      `uncredited, send \`{"outcome": "returned", "reason": "…", "version": ${version}}\`. Or run ` +
      `\`npm run operator -- deposit resolve ${depositId} --credit --if-version ${version} --reason "…"\`, with ` +
      '`--returned` instead of `--credit` if they should not be credited. A payment that arrives in the meantime is not ' +
      'affected.',
  ];
}

const NO_DECISION = 'it has to be `{"outcome": "credited" or "returned", "reason": "…", "version": number}`.';

const NOT_CARRIED_OUT: Record<WhyNotResolved, string> = {
  nothing_in_review: 'nothing is in review.',
  changed_meanwhile: 'the deposit has changed since. Check what is shown here, and decide again.',
  version_needed: 'more than one payment is in review, and it names no version.',
  below_a_cent: 'together they add up to less than a cent, so they can only be "returned".',
  past_the_largest_balance: 'the balance would exceed its maximum.',
  unreadable_reason: 'its reason must be 1 to 500 characters on one line.',
};
