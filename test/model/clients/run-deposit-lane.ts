import { randomUUID } from 'node:crypto';
import { resolveDeposit } from '../../../deposits/resolve.ts';
import { addressHash, hashName, toBase58Address } from '../../../dev/tron/address.ts';
import {
  approval,
  type Draft,
  failedTransfer,
  type Payment,
  tokenTransfer,
} from '../../../dev/tron/drafts.ts';
import type { Account, Deposit } from '../account.ts';
import { Difference, demandSame } from '../difference.ts';
import { type Decision, UNPAID } from '../rules/deposit.ts';
import { outcomeOf } from '../rules/operation.ts';
import type { DepositDraw, DepositLane } from '../script.ts';
import { count } from '../tally.ts';
import { ask } from './ask.ts';
import type { Run } from './run.ts';
import { untilThere } from './running-service.ts';

const OTHER_TOKEN = toBase58Address(hashName('another token'));
const MICRO_PER_CENT = 10_000n;

/** One client's work on a deposit: right and wrong payments, and an operator's decisions. @param deposit undefined: a new one */
export async function runDepositLane(
  run: Run,
  account: Account,
  lane: DepositLane,
  deposit: Deposit | undefined,
  name: string,
): Promise<void> {
  const worked = deposit ?? (await open(run, account, lane, `${name}.open`));
  const isWaiting = worked.state.payments.some(({ status }) => status === 'in_review');
  const kind = lane.cents % 2 === 0 ? 'returned' : 'credited';
  // Otherwise most decisions would come before their payment.
  const first: DepositDraw[][] = isWaiting ? [[{ kind, micro: 0, pick: lane.pick }]] : [];
  for (const [index, draws] of [...first, ...lane.steps].entries()) {
    await Promise.all(draws.map((draw, place) => act(run, worked, draw, `${name}.${index}.${place}`)));
  }
}

async function open(
  run: Run,
  account: Account,
  { cents, twice }: DepositLane,
  name: string,
): Promise<Deposit> {
  const { service, accounts, tally } = run;
  const request = {
    key: account.key,
    method: 'POST',
    path: '/funding/deposit-address',
    body: { amount: cents },
    idempotencyKey: randomUUID(),
  } as const;
  const send = () => ask(service, request);
  const [answer, other] = await Promise.all([send(), ...(twice ? [send()] : [])]);
  const { id, address, status, amount, expires_at: expiresAt } = answer?.json ?? {};
  const hash = addressHash(address ?? '');
  if (answer === undefined || outcomeOf(answer) !== '201' || hash === null)
    throw new Difference(`${name}: an address for ${cents} got ${answer?.status} ${answer?.text}`);
  demandSame(name, { status, amount }, { status: 'awaiting_payment', amount: cents });
  const taken = accounts.flatMap(({ deposits }) => deposits).find((one) => one.addressHash === hash);
  if (taken !== undefined) throw new Difference(`${name}: ${address} was given out before, for ${taken.id}`);
  const deposit: Deposit = {
    ...{ account, id, address, addressHash: hash, state: UNPAID, transfers: [], decisions: [] },
    ...{
      terms: { amountCents: cents, expiresAtMs: Date.parse(expiresAt) },
      log: [`${name} -> ${answer.text}`],
    },
  };
  account.deposits.push(deposit);
  if (other !== undefined) demandSame(`${name}: one request, two answers`, other.text, answer.text);
  const again = await send();
  demandSame(`${name} asked again`, again.text, answer.text);
  count(tally.asked, `live deposit ${answer.status}`);
  return deposit;
}

async function act(
  run: Run,
  deposit: Deposit,
  { kind, micro, pick }: DepositDraw,
  name: string,
): Promise<void> {
  const { service, tally } = run;
  count(tally.asked, `live deposit ${kind}`);
  if (kind === 'credited' || kind === 'returned') return decide(run, deposit, kind, name);
  const { account } = deposit;
  if (kind === 'test_key') {
    const { key } = run.accounts.find(
      ({ partnerId, mode }) => partnerId === account.partnerId && mode === 'test',
    ) as Account;
    const answer = await ask(service, {
      key,
      method: 'POST',
      path: '/funding/deposit-address',
      body: { amount: 100 },
    });
    return demandSame(`${name}: with a test key`, outcomeOf(answer), '403 test_key_not_allowed');
  }
  for (const draft of draftsOf(deposit, { kind, micro, pick })) service.chain.send(draft, run.tick());
  deposit.log.push(`${name} ${kind} ${micro}`);
}

function draftsOf({ address: to, terms }: Deposit, { kind, micro, pick }: DepositDraw): Draft[] {
  const exact: Payment = { to, valueMicroUsdt: BigInt(terms.amountCents) * MICRO_PER_CENT };
  const other: Payment = { to, valueMicroUsdt: BigInt(micro) };
  switch (kind) {
    case 'exact':
      return [tokenTransfer(exact)];
    case 'twice':
      return [
        tokenTransfer(exact),
        tokenTransfer({ ...exact, from: toBase58Address(hashName(`payer ${pick}`)) }),
      ];
    case 'halves':
      return [tokenTransfer({ to, valueMicroUsdt: exact.valueMicroUsdt / 2n }), tokenTransfer(other)];
    case 'dust':
      return [tokenTransfer({ to, valueMicroUsdt: BigInt(1 + (micro % 9_999)) })];
    case 'pair':
      return [tokenTransfer(pick % 2 === 0 ? [exact, other] : [other, exact])];
    case 'other':
      return [tokenTransfer(other)];
    default:
      return [
        ...[failedTransfer(exact, 'REVERT', 'logs'), failedTransfer(exact, 'OUT_OF_ENERGY'), approval(exact)],
        ...[tokenTransfer(exact, OTHER_TOKEN), tokenTransfer({ to, valueMicroUsdt: 0n })],
      ].slice(pick % 5);
  }
}

/** An operator decides a deposit's payments in review: credits them if possible, and otherwise returns them. */
export async function decideReview(run: Run, deposit: Deposit, name: string): Promise<void> {
  if (!deposit.state.payments.some(({ status }) => status === 'in_review')) return;
  await decide(run, deposit, 'credited', `${name}.credited`);
  await decide(run, deposit, 'returned', `${name}.returned`);
}

/** An operator's decision. If its answer gets lost, it is made again, as another decision. */
async function decide(run: Run, deposit: Deposit, outcome: Decision['outcome'], name: string): Promise<void> {
  const { operator } = run.service.stack;
  await untilThere(async () => {
    const decision: Decision = {
      ...{ name, outcome, taken: 'unknown' },
      ...{ askedAt: run.tick(), heardAt: Number.POSITIVE_INFINITY },
    };
    deposit.decisions.push(decision);
    try {
      const verdict = await resolveDeposit(operator, { depositId: deposit.id, outcome, reason: 'the model' });
      if (verdict === null) throw new Difference(`${name}: there is no ${deposit.id}`);
      decision.taken = verdict.resolved;
      deposit.log.push(`${name} ${outcome} -> ${JSON.stringify(verdict)}`);
      count(run.tally.asked, `live deposit ${outcome}: ${verdict.resolved ? 'done' : verdict.because}`);
    } finally {
      decision.heardAt = run.tick();
    }
  });
}
