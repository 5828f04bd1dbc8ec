import type { Card } from '../account.ts';
import type { Draw } from '../script.ts';
import {
  findNetworkCardId,
  keyed,
  keyedOrNot,
  merchantFields,
  networkMerchant,
  type Put,
  read,
  reported,
} from './put.ts';
import { putOnLiveCard, putOnTestCard } from './put-authorization.ts';
import type { Service } from './running-service.ts';

/** The question that a draw becomes for this card. If it is not possible for the card, it becomes a read. */
export async function putQuestion(service: Service, card: Card, draw: Draw): Promise<Put> {
  const { account, id } = card;
  const { pick } = draw;
  const kind = draw.kind === 'lapse' && service.lapse === undefined ? 'expire' : draw.kind;
  const path = `/cards/${id}`;
  switch (kind) {
    case 'top_up': {
      const amount = fundingCents(draw);
      const other = { path: `${path}/topups`, body: { amount: amount + 1 } };
      const requests = { path: `${path}/topups`, body: { amount }, other };
      return keyed(service, account, { kind, cents: amount }, requests);
    }
    case 'withdraw': {
      const amount = fundingCents({ cents: Math.round(draw.cents / 4), digits: draw.digits });
      const other = { path: `${path}/withdrawals`, body: { amount: amount + 1 } };
      const requests = { path: `${path}/withdrawals`, body: { amount }, other };
      return keyed(service, account, { kind, cents: amount }, requests);
    }
    case 'freeze':
    case 'unfreeze':
    case 'block': {
      const other = { path: `${path}/${kind === 'block' ? 'freeze' : 'block'}` };
      return keyed(service, account, { kind: 'change', verb: kind }, { path: `${path}/${kind}`, other });
    }
    case 'control': {
      const { controls } = draw;
      const other = { path, body: { card_name: 'another change' } };
      const requests = { method: 'PATCH', path, body: { spending_controls: controls }, other } as const;
      return keyedOrNot(service, { account, pick }, { kind, controls }, requests);
    }
    case 'purchase':
    case 'decline':
    case 'refund': {
      if (account.mode === 'test') return simulate(service, card, kind, draw);
      const networkCardId = await findNetworkCardId(service, card);
      if (networkCardId !== undefined) return report(service, networkCardId, kind, draw);
      break;
    }
    case 'authorize':
    case 'increment':
    case 'clear':
    case 'reverse':
    case 'expire':
    case 'lapse': {
      // A blocked card declines whatever is asked of it.
      const isDone = card.states[0]?.status === 'blocked' && card.authorized.every(({ isOver }) => isOver);
      if (isDone && kind !== 'authorize') break;
      if (account.mode === 'test') return putOnTestCard(service, card, kind, draw);
      const networkCardId = await findNetworkCardId(service, card);
      if (networkCardId !== undefined) return putOnLiveCard(service, { card, networkCardId }, kind, draw);
    }
  }
  return readSomething(service, card, pick);
}

function readSomething(service: Service, { account, id, authorized }: Card, pick: number): Put {
  const authorization = account.mode === 'test' ? authorized.at(-1)?.ref : undefined;
  switch (pick % 5) {
    case 0:
      return readTopUps(service, { account, id });
    case 1:
      return read(service, account, { kind: 'read_withdrawals' }, `/cards/${id}/withdrawals?limit=100`);
    case 2:
      return read(service, account, { kind: 'read_limits' }, `/cards/${id}/spending-limits`);
    case 3:
      if (authorization === undefined) break;
      return read(
        service,
        account,
        { kind: 'read_authorization', authorization },
        `/authorizations/${authorization}`,
      );
  }
  return read(service, account, { kind: 'read' }, `/cards/${id}`);
}

export function readTopUps(service: Service, { account, id }: Pick<Card, 'account' | 'id'>): Put {
  return read(service, account, { kind: 'read_topups' }, `/cards/${id}/topups?limit=100`);
}

/** The last two digits choose what the simulated network does. */
export function fundingCents({ cents, digits }: Pick<Draw, 'cents' | 'digits'>): number {
  return Math.max(1, cents - (cents % 100) + digits);
}

type Spending = 'purchase' | 'decline' | 'refund';

function simulate(service: Service, { account, id }: Card, type: Spending, draw: Draw): Put {
  const { pick, merchant } = draw;
  const cents = spentCents(draw);
  const force = Math.floor(pick / 2) % 4 === 0;
  const path = `/test/cards/${id}/simulate-transaction`;
  const body = { type, amount: cents, ...(force && { force }), ...merchantFields(merchant) };
  const common = { kind: 'transaction', type, cents, merchant } as const;
  return keyedOrNot(
    service,
    { account, pick },
    { ...common, forced: force, simulated: !force },
    { path, body, other: { path, body: { ...body, amount: cents + 1 } } },
  );
}

function report(service: Service, networkCardId: string, type: Spending, draw: Draw): Put {
  const { pick, merchant } = draw;
  const cents = spentCents(draw);
  const forced = pick % 3 > 0;
  const message = {
    networkCardId,
    type,
    forced,
    amountCents: cents,
    merchant: networkMerchant(merchant),
  };
  const question = { kind: 'transaction', type, cents, forced, simulated: false, merchant } as const;
  return reported(service, question, { message, other: { ...message, amountCents: cents + 1 } });
}

const spentCents = ({ cents }: Draw): number => Math.max(1, Math.round(cents / 2));
