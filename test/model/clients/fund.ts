import { randomUUID } from 'node:crypto';
import { adjustBalance } from '../../../accounts/adjust-balance.ts';
import { Refusal } from '../../../domain/refusal.ts';
import type { Account } from '../account.ts';
import { Difference, demandSame } from '../difference.ts';
import { outcomeOf } from '../rules/operation.ts';
import type { Funding } from '../script.ts';
import { count } from '../tally.ts';
import { ask } from './ask.ts';
import type { Run } from './run.ts';
import { untilThere } from './running-service.ts';

/** A faucet credit, or a credit or debit by an operator. Live accounts have no faucet. */
export async function fund(run: Run, account: Account, funding: Funding, name: string): Promise<void> {
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
