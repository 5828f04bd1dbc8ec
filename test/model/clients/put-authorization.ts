import { randomUUID } from 'node:crypto';
import { Refusal } from '../../../domain/refusal.ts';
import { dismissObject } from '../../../issuers/inbox/network-event-operator.ts';
import { query } from '../../../platform/db/sql.ts';
import { until } from '../../support/until.ts';
import type { Card, KnownAuthorization } from '../account.ts';
import type { Draw } from '../script.ts';
import {
  findNetworkCardId,
  keyed,
  keyedOrNot,
  merchantFields,
  networkMerchant,
  type Put,
  reported,
  requested,
} from './put.ts';
import { type Service, untilThere, waitFor } from './running-service.ts';

type Kind = 'authorize' | 'increment' | 'clear' | 'reverse' | 'expire' | 'lapse';

/** What a merchant does on a test card, as a partner simulates it. Without an authorization, it asks for one. */
export function putOnTestCard(service: Service, card: Card, kind: Kind, draw: Draw): Put {
  const { account, id } = card;
  const { pick, merchant } = draw;
  const found = choose(card, pick);
  if (kind === 'clear' && (found === undefined || pick % 11 === 0)) {
    const cents = askedCents(draw);
    const path = `/test/cards/${id}/force-capture`;
    const body = { amount: cents, ...merchantFields(merchant) };
    const other = { path, body: { ...body, amount: cents + 1 } };
    const question = { kind, authorization: null, cents, final: true, merchant };
    return keyedOrNot(service, { account, pick }, question, { path, body, other });
  }
  if (kind === 'authorize' || found === undefined) return authorize(service, card, draw);
  if (kind === 'lapse') return lapse(service, found.ref);
  const { ref: authorization } = found;
  const cents = amountOf(kind, found, draw);
  const verb = kind === 'clear' ? 'capture' : kind;
  const path = `/test/authorizations/${authorization}/${verb}`;
  const final = isFinal(pick);
  found.isOver = ends(kind, pick);
  const body = {
    ...(kind !== 'expire' && cents !== null && { amount: cents }),
    ...(kind === 'clear' && { final }),
  };
  const asOther = kind === 'expire' ? 'reverse' : 'expire';
  const other = { path: `/test/authorizations/${authorization}/${asOther}`, body: {} };
  const put = (question: Put['question']) =>
    keyedOrNot(service, { account, pick }, question, { path, body, other });
  switch (kind) {
    case 'increment':
      return put({ kind, authorization, cents: cents ?? 1, merchant, networkId: null });
    case 'clear':
      return put({ kind, authorization, cents, final, merchant });
    case 'reverse':
      return put({ kind, authorization, cents });
    case 'expire':
      return put({ kind, authorization });
  }
}

function authorize(service: Service, card: Card, draw: Draw): Put {
  const { account, id, authorized } = card;
  const { pick, merchant } = draw;
  const cents = askedCents(draw);
  const path = `/test/cards/${id}/authorizations`;
  const body = { amount: cents, ...merchantFields(merchant) };
  const other = { path, body: { ...body, amount: cents + 1 } };
  const question = { kind: 'authorize', cents, merchant, networkId: null } as const;
  const put = keyedOrNot(service, { account, pick }, question, { path, body, other });
  const send = async () => {
    const answer = await put.send();
    const ref: string | undefined = answer.status === 201 ? answer.json.id : undefined;
    const isNew = ref !== undefined && authorized.every((one) => one.ref !== ref);
    const isOver = answer.json.status !== 'pending';
    if (isNew) authorized.push({ ref, cents, isRequested: true, isOver });
    return answer;
  };
  return { ...put, send };
}

/** What the network asks and reports about a live card, now and then in the wrong order. */
export function putOnLiveCard(
  service: Service,
  { card, networkCardId }: { card: Card; networkCardId: string },
  kind: Kind,
  draw: Draw,
): Put {
  const { pick, merchant } = draw;
  const common = { networkCardId, merchant: networkMerchant(merchant) };
  if (kind === 'clear' && pick % 11 === 0) {
    const cents = askedCents(draw);
    const message = { ...common, type: 'clearing', amountCents: cents };
    const question = { kind, authorization: null, cents, final: true, merchant };
    return reported(service, question, { message, other: { ...message, amountCents: cents + 1 } });
  }
  // A clearing that overtakes its request, or a reversal or expiry that does.
  const overtakes =
    (kind === 'clear' && pick % 3 === 0) || ((kind === 'reverse' || kind === 'expire') && pick % 7 === 0);
  const found = overtakes ? know(card, askedCents(draw)) : choose(card, pick);
  if (kind === 'authorize' || found === undefined || (!overtakes && !found.isRequested && pick % 2 === 0))
    return request(service, card, common, draw);
  const { ref: networkAuthorizationId } = found;
  if (kind === 'lapse') return lapse(service, networkAuthorizationId);
  const amountCents = amountOf(kind, found, draw);
  found.isOver = found.isRequested && ends(kind, pick);
  const about = { ...common, networkAuthorizationId };
  switch (kind) {
    case 'increment': {
      found.isRequested = true;
      const cents = amountCents ?? 1;
      const message = { ...about, type: 'increment', amountCents: cents };
      const names = { authorization: networkAuthorizationId, networkId: networkAuthorizationId };
      return requested(
        service,
        { kind, cents, merchant, ...names },
        { message, other: { ...message, amountCents: cents + 1 } },
      );
    }
    case 'clear': {
      const cents = amountCents ?? found.cents;
      const final = isFinal(pick);
      const message = { ...about, type: 'clearing', amountCents: cents, final };
      const question = { kind, authorization: networkAuthorizationId, cents, final, merchant };
      return reported(service, question, { message, other: { ...message, amountCents: cents + 1 } });
    }
    case 'reverse': {
      const message = { ...about, type: 'reversal', amountCents };
      const other = { ...message, amountCents: (amountCents ?? 0) + 1 };
      const question = { kind, authorization: networkAuthorizationId, cents: amountCents };
      return dismissed(service, networkAuthorizationId, reported(service, question, { message, other }));
    }
    case 'expire': {
      const message = { ...about, type: 'expiry' };
      const question = { kind, authorization: networkAuthorizationId };
      return dismissed(
        service,
        networkAuthorizationId,
        reported(service, question, { message, other: { ...message, type: 'reversal' } }),
      );
    }
  }
}

/** The network asks for an authorization, most of the time for one that something else has overtaken. */
function request(service: Service, card: Card, about: object, draw: Draw): Put {
  const { pick, merchant } = draw;
  const waiting = pick % 8 > 0 ? card.authorized.find(({ isRequested }) => !isRequested) : undefined;
  const asked = waiting ?? know(card, askedCents(draw));
  asked.isRequested = true;
  const cents = pick % 13 === 0 ? 0 : waiting === undefined ? asked.cents : askedCents(draw);
  if (cents === 0) asked.isRequested = false;
  const { ref: networkAuthorizationId } = asked;
  const message = { ...about, type: 'authorization', amountCents: cents, networkAuthorizationId };
  const question = { kind: 'authorize', cents, merchant, networkId: networkAuthorizationId } as const;
  const put = requested(service, question, { message, other: { ...message, amountCents: cents + 1 } });
  // A request for nothing leaves no record, so another one may have its id.
  if (cents === 0) return { question, send: put.send, saysSo: false };
  const send = async () => {
    const answer = await put.send();
    asked.isOver ||= answer.json.approved === false;
    return answer;
  };
  return { ...put, send };
}

/** Lets an authorization expire, by our id of it in test mode and by the network's in live mode. */
export async function expiry(service: Service, card: Card, ref: string): Promise<Put> {
  const question = { kind: 'expire', authorization: ref } as const;
  if (card.account.mode === 'test') {
    const path = `/test/authorizations/${ref}`;
    const other = { path: `${path}/reverse`, body: {} };
    return keyed(service, card.account, question, { path: `${path}/expire`, body: {}, other });
  }
  const networkCardId = await findNetworkCardId(service, card);
  const message = { networkCardId, networkAuthorizationId: ref, type: 'expiry' };
  return reported(service, question, { message, other: { ...message, type: 'reversal' } });
}

/** What overtook its request and can't be applied yet is kept, and an operator dismisses it. */
function dismissed(service: Service, paymentId: string, put: Put): Put {
  const send = async () => {
    const answer = await put.send();
    if (answer.status === 202) await dismiss(service, paymentId);
    return answer;
  };
  return { ...put, send };
}

/** It may be dismissed already, by this or after an earlier repetition. */
async function dismiss({ stack }: Service, paymentId: string): Promise<void> {
  const { operator } = stack;
  await untilThere(() => dismissObject(operator, paymentId, 'the model')).catch((error: unknown) => {
    if (!(error instanceof Refusal)) throw error;
  });
}

/** The time of an authorization is over. A worker finds that out. */
function lapse(service: Service, ref: string): Put {
  const send = async () => {
    await service.lapse?.(ref);
    await waitFor(service, () =>
      until(`${ref} has expired`, async () => {
        const rows = await untilThere(() =>
          query(
            service.stack.orm.em.fork(),
            `SELECT FROM card_authorization
             WHERE status = 'pending' AND expires_at <= now() AND (id = $1 OR network_authorization_id = $1)`,
            [ref],
          ),
        );
        return rows.length === 0;
      }),
    );
    return { status: 200, headers: new Headers(), text: '', json: undefined };
  };
  return { question: { kind: 'lapse', authorization: ref }, send, saysSo: false };
}

/** One of the newest that the client knows of, most of the time one that is not over. */
function choose({ authorized }: Card, pick: number): KnownAuthorization | undefined {
  const open = authorized.filter(({ isOver }) => !isOver);
  const among = pick % 5 > 0 ? open : authorized;
  return among[among.length - 1 - (pick % Math.min(among.length, 4))];
}

/** An authorization whose request has not been sent. */
function know({ authorized }: Card, cents: number): KnownAuthorization {
  const known = { ref: randomUUID(), cents, isRequested: false, isOver: false };
  authorized.push(known);
  return known;
}

const askedCents = ({ cents }: Draw): number => Math.max(1, Math.round(cents / 4));

/** Whether it ends most authorizations. */
const ends = (kind: Kind, pick: number): boolean => kind === 'expire' || (kind === 'clear' && isFinal(pick));

const isFinal = (pick: number): boolean => Math.floor(pick / 16) % 2 === 0;

/** A part of what was asked for first, all of it, more, or null: all that is left. */
function amountOf(kind: Kind, { cents }: KnownAuthorization, draw: Draw): number | null {
  const part = Math.ceil(cents / 3);
  if (kind === 'increment') return part;
  switch (Math.floor(draw.pick / 4) % 4) {
    case 0:
      return null;
    case 1:
      return kind === 'reverse' ? part : cents + Math.round(draw.cents / 4);
    default:
      return part;
  }
}
