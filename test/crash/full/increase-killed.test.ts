import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { freePort } from '../../../dev/free-port.ts';
import type { FakeIncrease, SeenRequest } from '../../../dev/increase/fake-increase.ts';
import type { Child } from '../../../dev/process/child.ts';
import { madeFor } from '../../support/adapters/increase.ts';
import {
  authorize,
  type IncreaseCard,
  liveCard,
  read,
  startIncreaseStack,
  untilRead,
} from '../../support/adapters/increase-stack.ts';
import { createCard } from '../../support/cards.ts';
import {
  bundleFile,
  kill,
  scratchFolder,
  startApiProcess,
  startProcess,
} from '../../support/crash/processes.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import type { Answer, TestStack } from '../../support/stack.ts';
import { until, untilHolds } from '../../support/until.ts';

type When = 'before' | 'after';
const REFUSED_CENTS = 6_666;

/** What is under way when the worker dies: its request stands at the fake, before or after it has acted. */
interface Operation {
  stands(request: SeenRequest): boolean;
  ask(): Promise<unknown>;
  check(answer: unknown): Promise<void> | void;
  /** The request that stands before it acts gets lost; otherwise it acts late, when the repetition may be there, too. */
  isDropped?: boolean;
}

describe('operations on Increase', () => {
  let stack: TestStack;
  let fake: FakeIncrease;
  let stop: () => Promise<void>;
  let worker: Child;
  const folder = scratchFolder();
  before(async () => {
    const config = { cardCreationWaitMs: 60_000, logLevel: 'error' as const };
    ({ stack, fake, stop } = await startIncreaseStack(config, { worker: false, hosted: false }));
    fake.bank.refusedCents = REFUSED_CENTS;
    worker = await startWorkerProcess();
  });
  after(async () => {
    await kill(worker);
    await assertLedgerClean(stack);
    await stop();
  });

  const startWorkerProcess = async () =>
    startProcess(stack.config, folder, 'worker/main.ts', {
      env: { WORKFLOW_BUNDLE: await bundleFile(folder) },
    });
  const post = ({ partner, cardId }: IncreaseCard, verb: string, body: object = {}) =>
    partner.call('POST', `/cards/${cardId}/${verb}`, { mode: 'live', body, idempotencyKey: randomUUID() });
  const centsOf = ({ cardId }: IncreaseCard) => madeFor(fake, cardId).cents;

  /** Starts the operations, kills the worker once each stands where it should, and starts another one. */
  async function killWhile(operations: readonly Operation[], when: When): Promise<void> {
    const standing = new Set<Operation>();
    let release = () => {};
    const dead = new Promise<void>((resolve) => {
      release = resolve;
    });
    fake.onRequest = async (request, at) => {
      if (at !== when) return 'go on';
      const operation = operations.find((one) => !standing.has(one) && one.stands(request));
      if (operation === undefined) return 'go on';
      standing.add(operation);
      await dead;
      return operation.isDropped ? 'drop' : 'go on';
    };
    const asked = operations.map((one) => one.ask());
    await until('all of them stand', () => standing.size === operations.length);
    await kill(worker);
    fake.onRequest = async () => 'go on';
    fake.bank.refusedCents = null;
    release();
    worker = await startWorkerProcess();
    for (const [index, operation] of operations.entries()) await operation.check(await asked[index]);
    fake.bank.refusedCents = REFUSED_CENTS;
  }

  async function issuance(step: string): Promise<Operation> {
    const partner = await fundedPartner(stack);
    return {
      stands: ({ name, key }) => name === step && key?.startsWith('card_') === true,
      ask: () => createCard(partner, { amount: 5_000 }, { mode: 'live' }),
      check: (answer) => {
        const { status, json } = answer as Answer;
        assert.equal(status, 201);
        assert.deepEqual(madeFor(fake, json.id), {
          accounts: 1,
          cards: ['active'],
          transfers: ['complete'],
          cents: 5_000,
        });
      },
    };
  }

  /** @param step the place of its request, `GET` or `POST` */
  async function movement(verb: 'topups' | 'withdrawals', step: 'GET' | 'POST'): Promise<Operation> {
    const card = await liveCard(stack);
    const prefix = verb === 'topups' ? 'topup_' : 'wdr_';
    return {
      stands: ({ name, key }) =>
        step === 'GET'
          ? name === `GET /cards/${card.networkCardId}`
          : name === 'POST /account_transfers' && key?.startsWith(prefix) === true,
      ask: () => post(card, verb, { amount: 700 }),
      check: async (answer) => {
        assert.equal((answer as Answer).status, 201);
        const cents = verb === 'topups' ? 10_700 : 9_300;
        assert.equal(centsOf(card), cents);
        assert.equal((await read(card)).balance, cents);
      },
    };
  }

  async function statusChange(verb: string, status: string): Promise<Operation> {
    const card = await liveCard(stack);
    return {
      stands: ({ name }) => name === `PATCH /cards/${card.networkCardId}`,
      ask: () => post(card, verb),
      check: (answer) => {
        assert.equal((answer as Answer).status, 200);
        assert.equal(fake.bank.card(card.networkCardId).status, status);
      },
    };
  }

  async function settlement(): Promise<Operation> {
    const card = await liveCard(stack);
    return {
      stands: ({ name }) =>
        fake.bank.books.payments.some(
          ({ id, card_id }) => card_id === card.networkCardId && name === `GET /card_payments/${id}`,
        ),
      ask: async () => fake.simulations.settle({ card_id: card.networkCardId, amount: 1_000 }),
      check: () =>
        until('the settlement is booked', async () => (await read(card)).balance === 9_000).then(async () => {
          assert.equal((await read(card, '/transactions')).data.length, 1);
        }),
    };
  }

  const at = { before: 'before it acts', after: 'before it answers' };
  for (const when of ['before', 'after'] as const) {
    it(`have one effect each if the worker is killed -9 while Increase has their first request, ${at[when]}`, async () => {
      await killWhile(
        [
          await issuance('POST /accounts'),
          await movement('topups', 'GET'),
          await movement('withdrawals', 'GET'),
          await statusChange('freeze', 'disabled'),
          await statusChange('block', 'canceled'),
          await settlement(),
        ],
        when,
      );
    });

    it(`have one effect each if the worker is killed -9 while Increase has a later one, ${at[when]}`, async () => {
      await killWhile(
        [
          await issuance('POST /cards'),
          await movement('topups', 'POST'),
          await movement('withdrawals', 'POST'),
        ],
        when,
      );
      await killWhile([await issuance('POST /account_transfers')], when);
    });
  }

  it('that were refused stay refused, or get the one transfer, if the worker is killed -9 while the card is canceled', async () => {
    for (const when of ['before', 'after'] as const) {
      const partner = await fundedPartner(stack);
      let cardId = '';
      await killWhile(
        [
          {
            isDropped: true,
            stands: ({ name, body }) => name.startsWith('PATCH /cards/') && body.includes('canceled'),
            ask: () => createCard(partner, { amount: REFUSED_CENTS }, { mode: 'live' }),
            check: (answer) => {
              const { status, json } = answer as Answer;
              cardId = fake.bank.books.accounts.at(-1)?.name ?? '';
              const { accounts, cards, transfers, cents } = madeFor(fake, cardId);
              assert.deepEqual([accounts, cards.length], [1, 1]);
              // Before the cancellation nothing was final, and the repetition was not refused.
              if (when === 'before')
                assert.deepEqual(
                  [status, json.id, transfers, cents],
                  [201, cardId, ['complete'], REFUSED_CENTS],
                );
              else assert.deepEqual([status, cards, transfers, cents], [402, ['canceled'], [], 0]);
            },
          },
        ],
        when,
      );
    }
  });

  it('are decided once, and hold nothing unless Increase has the answer, if the API is killed -9 with a decision', async () => {
    const config = { ...stack.config, port: await freePort() };
    const subscription = fake.bank.books.subscriptions.find((one) => one.selected_event_categories !== null);
    assert.ok(subscription);
    subscription.url = subscription.url.replace(/:\d+\//, `:${config.port}/`);
    for (const [step, when, heldCents] of [
      ['GET /real_time_decisions/', 'before', 0],
      ['GET /real_time_decisions/', 'after', 0],
      ['/action', 'before', 0],
      ['/action', 'after', 1_000],
    ] as const) {
      const card = await liveCard(stack);
      const api = await startApiProcess(config, folder);
      let isKilled = false;
      fake.onRequest = async ({ name }, at) => {
        if (isKilled || at !== when || !name.includes(step)) return 'go on';
        isKilled = true;
        await kill(api);
        return 'drop';
      };
      await authorize(fake, card);
      assert.ok(isKilled, `${when} ${step}`);
      fake.onRequest = async () => 'go on';
      await untilRead(stack, fake);
      await untilHolds(async () => {
        assert.equal((await read(card)).available_balance, 10_000 - heldCents, `${when} ${step}`);
      });
    }
  });
});
