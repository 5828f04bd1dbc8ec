import assert from 'node:assert/strict';
import type { Increase } from 'increase';
import { freePort } from '../../../dev/free-port.ts';
import { type FakeIncrease, startFakeIncrease } from '../../../dev/increase/fake-increase.ts';
import type { IncreaseConfig } from '../../../platform/config/card-networks.ts';
import type { Config } from '../../../platform/config/service.ts';
import { networkIdOf } from '../api/network-events.ts';
import { createCard } from '../cards.ts';
import { inboxRead } from '../inbox.ts';
import { fundedPartner } from '../money.ts';
import { startTestStack, type TestStack } from '../stack.ts';
import { increaseConfigOf, WEBHOOK_SECRET } from './increase.ts';

export const EVENTS_PATH = '/network/increase/events';

/** How long the fake waits for a decision: a machine that does much else at the time changes none. */
export const PATIENT_MS = 60_000;

/** The service with the fake Increase as live mode's network, whose events the API takes. */
export async function startIncreaseStack(
  overrides: Partial<Config> = {},
  options: Parameters<typeof startTestStack>[1] = {},
  configOf: (fake: FakeIncrease) => IncreaseConfig = increaseConfigOf,
) {
  const fake = await startFakeIncrease();
  fake.simulations.decisionMs = PATIENT_MS;
  const port = overrides.port ?? (await freePort());
  const config = { cardNetwork: 'increase', increase: configOf(fake), port } as const;
  const stack = await startTestStack({ ...config, ...overrides }, options);
  fake.subscribe(`http://${stack.config.host}:${port}${EVENTS_PATH}`, WEBHOOK_SECRET, {
    asksForDecisions: config.increase.asksForDecisions,
  });
  return {
    stack,
    fake,
    stop: async () => {
      await fake.delivery.idle();
      await stack.stop();
      await fake.stop();
    },
  };
}

/** With 100 dollars, and its id at the fake. */
export async function liveCard(stack: TestStack, more: object = {}) {
  const partner = await fundedPartner(stack);
  const { status, json, text } = await createCard(partner, { amount: 10_000, ...more }, { mode: 'live' });
  assert.equal(status, 201, text);
  return { partner, cardId: json.id as string, networkCardId: await networkIdOf(stack, json.id) };
}

export type IncreaseCard = Awaited<ReturnType<typeof liveCard>>;

/** A merchant asks for money, and gets the fake's answer. @returns the card payment that came of it */
export async function authorize(
  fake: FakeIncrease,
  { networkCardId }: IncreaseCard,
  more: Partial<Increase.Simulations.CardAuthorizationCreateParams> = {},
): Promise<Increase.CardPayment> {
  const made = await fake.simulations.authorize({ card_id: networkCardId, amount: 1_000, ...more });
  const id =
    made.pending_transaction?.source.card_authorization?.card_payment_id ??
    made.declined_transaction?.source.card_decline?.card_payment_id;
  const payments = fake.bank.books.payments;
  return (payments.find((payment) => payment.id === id) ?? payments.at(-1)) as Increase.CardPayment;
}

/** Once every event of the fake is posted, read and booked. */
export async function untilRead(stack: TestStack, fake: FakeIncrease): Promise<void> {
  await fake.delivery.idle();
  await inboxRead(stack);
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the contract promises.
export async function read(card: IncreaseCard, path = ''): Promise<any> {
  const { status, json, text } = await card.partner.call('GET', `/cards/${card.cardId}${path}`, {
    mode: 'live',
  });
  assert.equal(status, 200, text);
  return json;
}
