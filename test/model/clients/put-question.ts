import { randomUUID } from 'node:crypto';
import { query } from '../../../db/sql.ts';
import type { Answer } from '../../support/stack.ts';
import type { Account, Card } from '../account.ts';
import type { Question } from '../rules/operation.ts';
import type { Draw } from '../script.ts';
import { ask, tellAsNetwork } from './ask.ts';
import { type Service, untilThere } from './running-service.ts';

/** A question, and how to send it. */
export interface Put {
  question: Question;
  send(): Promise<Answer>;
  /** Sends another request with the same key, if it has one. */
  altered?: () => Promise<Answer>;
  /** Whether a replayed answer says that it is one. */
  saysSo: boolean;
}

/** A POST with a key of its own. @param other a request that must not use the same key */
export function keyed(
  service: Service,
  { key }: Account,
  question: Question,
  request: { path: string; body?: object },
  other: { path: string; body?: object },
): Put {
  const common = { key, method: 'POST', idempotencyKey: randomUUID() } as const;
  return {
    question,
    send: () => ask(service, { ...common, ...request }),
    altered: () => ask(service, { ...common, ...other }),
    saysSo: true,
  };
}

/** The question that a draw becomes for this card. If it is not possible for the card, it becomes a read. */
export async function putQuestion(service: Service, card: Card, draw: Draw): Promise<Put> {
  const { account, id } = card;
  const { kind } = draw;
  const path = `/cards/${id}`;
  switch (kind) {
    case 'top_up': {
      const cents = fundingCents(draw);
      const to = (amount: number) => ({ path: `${path}/topups`, body: { amount } });
      return keyed(service, account, { kind, cents }, to(cents), to(cents + 1));
    }
    case 'freeze':
    case 'unfreeze':
    case 'block': {
      const other = { path: `${path}/${kind === 'block' ? 'freeze' : 'block'}` };
      return keyed(service, account, { kind: 'change', verb: kind }, { path: `${path}/${kind}` }, other);
    }
    case 'purchase':
    case 'decline':
    case 'refund': {
      const cents = Math.max(1, Math.round(draw.cents / 2));
      if (account.mode === 'test') return simulate(service, card, { type: kind, cents }, draw.pick);
      const networkCardId = await findNetworkCardId(service, card);
      if (networkCardId !== undefined) return tell(service, networkCardId, { type: kind, cents }, draw.pick);
    }
  }
  return draw.pick % 3 === 0 ? readTopUps(service, card) : readCard(service, card);
}

function readCard(service: Service, { account, id }: Card): Put {
  const request = { key: account.key, method: 'GET', path: `/cards/${id}` } as const;
  return { question: { kind: 'read' }, send: () => ask(service, request), saysSo: false };
}

export function readTopUps(service: Service, { account, id }: Card): Put {
  const request = { key: account.key, method: 'GET', path: `/cards/${id}/topups?limit=100` } as const;
  return { question: { kind: 'read_topups' }, send: () => ask(service, request), saysSo: false };
}

/** The last two digits choose what the simulated network does. */
export function fundingCents({ cents, digits }: Draw): number {
  return Math.max(1, cents - (cents % 100) + digits);
}

interface Spending {
  type: 'purchase' | 'decline' | 'refund';
  cents: number;
}

function simulate(service: Service, { account, id }: Card, { type, cents }: Spending, pick: number): Put {
  const question = { kind: 'transaction', type, cents, forced: false, simulated: true } as const;
  const to = (amount: number) => ({
    path: `/test/cards/${id}/simulate-transaction`,
    body: { type, amount },
  });
  // Without a key it could not be sent again after a lost answer.
  if (service.troubled || pick % 2 === 0) {
    return keyed(service, account, question, to(cents), to(cents + 1));
  }
  const request = { key: account.key, method: 'POST', ...to(cents) } as const;
  return { question, send: () => ask(service, request), saysSo: false };
}

function tell(service: Service, networkCardId: string, { type, cents }: Spending, pick: number): Put {
  const forced = pick % 3 > 0;
  const networkTransactionId = randomUUID();
  const common = { networkCardId, networkTransactionId, type, currency: 'USD', forced };
  return {
    question: { kind: 'transaction', type, cents, forced, simulated: false },
    send: () => tellAsNetwork(service, { ...common, amountCents: cents }),
    altered: () => tellAsNetwork(service, { ...common, amountCents: cents + 1 }),
    saysSo: false,
  };
}

async function findNetworkCardId({ stack }: Service, card: Card): Promise<string | undefined> {
  if (card.networkCardId !== undefined) return card.networkCardId;
  const [row] = await untilThere(() =>
    query<{ network_card_id: string | null }>(
      stack.orm.em.fork(),
      'SELECT network_card_id FROM card WHERE id = $1',
      [card.id],
    ),
  );
  card.networkCardId = row?.network_card_id ?? undefined;
  return card.networkCardId;
}
