import { randomUUID } from 'node:crypto';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import { Refusal } from '../../domain/refusal.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { until } from '../support/until.ts';
import type { Account, Card, Deposit } from './account.ts';
import { ask } from './clients/ask.ts';
import { changeControls, changePrices, openAccounts } from './clients/open-accounts.ts';
import { decideOverdue } from './clients/resolve.ts';
import type { Run } from './clients/run.ts';
import { decideReview, runDepositLane } from './clients/run-deposit-lane.ts';
import { releaseHolds, runLane } from './clients/run-lane.ts';
import { type Service, untilThere } from './clients/running-service.ts';
import { compareAccount } from './compare/compare-account.ts';
import { untilQuiet } from './compare/observe.ts';
import { Difference, demandSame } from './difference.ts';
import { outcomeOf } from './rules/operation.ts';
import type { Funding, Round, Script } from './script.ts';
import { count, type Tally } from './tally.ts';

interface Pace {
  kills(round: number): boolean;
  isOver?(): boolean;
  /** Whether an operator finally decides everything that waits for one, so that nothing stays held. */
  concludes?: boolean;
}

/**
 * Plays a script with partners of its own, and compares everything at the quiet point at the end of each round.
 * @throws Difference naming the seed
 */
export async function play(
  service: Service,
  { seed, rounds, startCents }: Script & { seed: number },
  tally: Tally,
  { kills, isOver = () => false, concludes = false }: Pace,
): Promise<void> {
  let now = 0;
  try {
    const accounts = await openAccounts(service.stack, startCents);
    const run: Run = { service, accounts, tally, tick: () => ++now };
    for (const [index, round] of rounds.entries()) {
      if (isOver()) break;
      const isKilled = kills(index);
      const wasTroubled = service.troubled;
      service.troubled ||= isKilled;
      await playRound(run, round, `r${index}`, isKilled);
      service.troubled = wasTroubled;
      await compareAtRest(run);
    }
    if (!concludes) return;
    await conclude(run);
    await compareAtRest(run);
    for (const { name, cards } of accounts) {
      const open = cards.flatMap(({ states: [state] }) => [
        ...(state?.pending ?? []),
        ...(state?.authorizations ?? []).filter(({ held }) => held > 0),
      ]);
      demandSame(`${name}: what is left to decide`, open, []);
    }
  } catch (error) {
    const what = error instanceof Difference ? error.message : (error as Error).stack;
    throw new Difference(`Seed ${seed} plays this script again. ${what}`);
  }
}

async function compareAtRest(run: Run): Promise<void> {
  const { service, accounts } = run;
  const resume = await service.pause?.();
  try {
    const settled = service.chain.settle();
    await untilQuiet(service, accounts, settled);
    await Promise.all(accounts.map((account) => compareAccount(run, account, settled)));
    const em = service.stack.orm.em.fork();
    demandSame('the invariants of the ledger', await untilThere(() => checkLedger(em)), []);
  } finally {
    resume?.();
  }
}

async function conclude(run: Run): Promise<void> {
  for (const [index, { cards, deposits }] of run.accounts.entries()) {
    await Promise.all([
      ...cards.map(async (card, place) => {
        await decideOverdue(run, card, `end${index}.${place}`);
        await releaseHolds(run, card, `end${index}.${place}`);
      }),
      ...deposits.map((deposit, place) => decideReview(run, deposit, `end${index}.deposit${place}`)),
    ]);
  }
}

async function playRound(run: Run, round: Round, name: string, isKilled: boolean): Promise<void> {
  const { service, accounts, tally } = run;
  for (const [partner, prices] of round.prices.entries()) {
    if (prices !== null)
      await changePrices(service.stack, accounts.slice(partner * 2, partner * 2 + 2), prices);
  }
  for (const [partner, controls] of round.controls.entries()) {
    if (controls !== undefined)
      await changeControls(service.stack, accounts.slice(partner * 2, partner * 2 + 2), controls);
  }
  const find = ({ partner, mode }: { partner: number; mode: Account['mode'] }): Account =>
    accounts[partner * 2 + (mode === 'test' ? 0 : 1)] as Account;
  const taken = new Set<Card>();
  const clients = round.lanes.map((lane, index) => {
    const account = find(lane);
    const card = lane.card === 'new' ? undefined : choose(account, taken, lane.issue.pick);
    if (card !== undefined) taken.add(card);
    return () => runLane(run, account, lane, card, `${name}.${index}`);
  });
  const answered = () => [...service.answers.values()].reduce((sum, one) => sum + one, 0);
  const killAt = answered() + round.killAfterAnswers;
  let areDone = false;
  const killing = async () => {
    await until('so many requests are answered', () => answered() >= killAt || areDone);
    count(tally.seen, `killed: ${await service.kill?.()}`);
  };
  const deposits = round.deposits.map((lane, index) => {
    const account = find({ ...lane, mode: 'live' });
    const deposit = lane.deposit === 'new' ? undefined : chooseDeposit(account, lane.pick);
    return () => runDepositLane(run, account, lane, deposit, `${name}.deposit${index}`);
  });
  service.chain.wake(round.trouble);
  const working = Promise.allSettled(clients.map((work) => work())).then((ended) => {
    areDone = true;
    return ended;
  });
  const others = await Promise.allSettled([
    ...deposits.map((work) => work()),
    ...round.funding.map((one, index) => fund(run, find(one), one, `${name}.fund${index}`)),
    ...(isKilled ? [killing()] : []),
  ]);
  for (const result of [...(await working), ...others]) if (result.status === 'rejected') throw result.reason;
}

/** Half of the time a deposit that waits for an operator. Several clients may have the same one. */
function chooseDeposit({ deposits }: Account, pick: number): Deposit | undefined {
  const waiting = deposits.filter(({ state }) => state.payments.some(({ status }) => status === 'in_review'));
  const among = pick % 2 === 0 && waiting.length > 0 ? waiting : deposits;
  return among[pick % among.length];
}

/**
 * A card that no other client has in this round: half of the time one that waits for an operator, and less often a blocked one
 * that has no money, since little more can be done with it, in test mode even less than in live mode.
 */
function choose(account: Account, taken: ReadonlySet<Card>, pick: number): Card | undefined {
  const isUseful = ({ states: [state] }: Card) => {
    if (state?.status !== 'blocked') return state?.status !== 'failed';
    return state.balance > 0 || pick % (account.mode === 'live' ? 2 : 5) === 0;
  };
  const free = account.cards.filter((card) => !taken.has(card) && isUseful(card));
  const waiting = free.filter(({ states: [state] }) => state !== undefined && state.pending.length > 0);
  const among = pick % 2 === 0 && waiting.length > 0 ? waiting : free;
  return among[pick % among.length];
}

/** A faucet credit, or a credit or debit by an operator. Live accounts have no faucet. */
async function fund(run: Run, account: Account, funding: Funding, name: string): Promise<void> {
  const askedAt = run.tick();
  const isFaucet = funding.kind === 'faucet' && account.mode === 'test';
  const cents = isFaucet ? Math.abs(funding.cents) : funding.cents;
  const make = isFaucet ? credit(run, account, cents) : adjust(run, account, cents);
  const answers = await Promise.all([make(), ...(funding.twice ? [make()] : [])]);
  const made = answers.includes(true);
  if (made) demandSame(`${name}: asked again`, await make(), true);
  const type = isFaucet ? 'faucet_credit' : 'adjustment';
  const heardAt = run.tick();
  // Refusals are not stored, so of two requests at the same time the later one may succeed.
  for (const one of new Set(answers))
    account.movements.push({ name, type, cents, made: one, askedAt, heardAt });
  count(run.tally.asked, `${account.mode} ${type} ${made ? (cents > 0 ? 'credit' : 'debit') : 'refused'}`);
}

function credit({ service }: Run, { key }: Account, amount: number): () => Promise<boolean> {
  const request = {
    key,
    method: 'POST',
    path: '/test/credit',
    body: { amount },
    idempotencyKey: randomUUID(),
  } as const;
  return async () => {
    const answer = await ask(service, request);
    const { available, held, total } = answer.json;
    if (outcomeOf(answer) === '201' && available + held === total) return true;
    throw new Difference(`a faucet credit of ${amount} got ${answer.status} ${answer.text}`);
  };
}

function adjust({ service }: Run, { partnerId, mode }: Account, amountCents: number): () => Promise<boolean> {
  const adjustment = { partnerId, mode, amountCents, reason: 'the model', key: randomUUID() };
  return () =>
    untilThere(async () => {
      try {
        await adjustBalance(service.stack.operator, adjustment);
        return true;
      } catch (error) {
        if (error instanceof Refusal) return false;
        throw error;
      }
    });
}
