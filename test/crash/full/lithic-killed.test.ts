import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { freePort } from '../../../dev/free-port.ts';
import type { FakeLithic } from '../../../dev/lithic/fake-lithic.ts';
import type { Fault as LithicFault } from '../../../dev/lithic/faults.ts';
import type { Child } from '../../../dev/process/child.ts';
import { allTaken, enrol, lithicCard, startLithicStack } from '../../support/adapters/lithic.ts';
import { createCard } from '../../support/cards.ts';
import { arm, describePlace, type Fault, faultsOf } from '../../support/crash/fault.ts';
import { startFaultyWorker } from '../../support/crash/faulty-processes.ts';
import { dieAt, kill, scratchFolder, startApiProcess } from '../../support/crash/processes.ts';
import { assertLedgerClean, balanceOf, fundedPartner, priceOf } from '../../support/money.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;
const FUNDS = 100_000;
const COMMIT: Fault['when'][] = ['before commit', 'after commit'];

const ISSUANCES: [Fault, LithicFault?][] = [
  ...faultsOf('requestIssuance', 1).map((fault): [Fault] => [fault]),
  [{ step: 'issueCard', run: 1, when: 'before' }],
  [{ step: 'issueCard', run: 'decided', when: 'after' }],
  [{ step: 'lookUpIssuance', run: 1, when: 'before' }, 'lost after'],
  [{ step: 'lookUpIssuance', run: 1, when: 'after' }, '500 after'],
  ...faultsOf('requestIssuance', 'decided', COMMIT).map((fault): [Fault] => [fault]),
];
const TOP_UPS: Fault[] = [
  { step: 'transfer', run: 1, when: 'before' },
  { step: 'requestTransfer', run: 'decided', when: 'after commit' },
];
const WITHDRAWALS: Fault[] = [
  { step: 'transfer', run: 'decided', when: 'after' },
  { step: 'requestTransfer', run: 'decided', when: 'before commit' },
];
const STATUS_CHANGES: Fault[] = [
  ...faultsOf('requestStatusChange', 1, COMMIT),
  { step: 'changeCardStatus', run: 1, when: 'before' },
  { step: 'changeCardStatus', run: 'decided', when: 'after' },
  ...faultsOf('requestStatusChange', 'decided', COMMIT),
];

describe('a worker that works with Lithic', () => {
  let fake: FakeLithic;
  let stack: TestStack;
  let stop: () => Promise<void>;
  let partner: TestPartner;
  const folder = scratchFolder();
  before(async () => {
    ({ fake, stack, stop } = await startLithicStack({ cardCreationWaitMs: 240_000 }, { worker: false }));
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, FUNDS);
  });
  afterEach(() => stack.stopWorker());
  after(async () => {
    await assertLedgerClean(stack);
    await stop();
  });

  const cardsFor = (cardId: string) =>
    [...fake.program.cards.values()].filter(({ memo }) => memo === cardId).length;

  /** Makes a request whose worker dies at this place, and has another worker complete it. */
  async function killedAt<T>(fault: Fault, ask: () => Promise<T>): Promise<T> {
    const { worker, options } = await startFaultyWorker(stack, folder);
    arm(options, [{ fault, partnerId: null }]);
    const answered = ask();
    assert.equal(await worker.exited, 'signal SIGKILL', worker.lastLines().join('\n'));
    assert.ok(existsSync(options.markerFile));
    await stack.startWorker();
    return answered;
  }

  async function issued(): Promise<string> {
    await stack.startWorker();
    const { json, status } = await createCard(partner, { amount: 1_000 }, live);
    assert.equal(status, 201);
    await stack.stopWorker();
    return json.id;
  }

  for (const [place, lithic] of ISSUANCES) {
    it(`issues one card if it is killed -9 ${describePlace(place)}${lithic ? ` and the answer was "${lithic}"` : ''}`, async () => {
      if (lithic !== undefined) fake.faults.add({ fault: lithic, request: 'POST /v1/cards', times: 1 });
      const { status, json, text } = await killedAt(place, () =>
        createCard(partner, { amount: 1_000 }, live),
      );
      assert.equal(status, 201, text);
      assert.equal(cardsFor(json.id), 1);
      const left = FUNDS - priceOf(1_000);
      assert.deepEqual(await balanceOf(partner, 'live'), [left, 0, left]);
    });
  }

  for (const [path, cases, balance] of [
    ['topups', TOP_UPS, 1_500],
    ['withdrawals', WITHDRAWALS, 500],
  ] as const) {
    for (const place of cases) {
      it(`moves the money once if it is killed -9 ${describePlace(place)}`, async () => {
        const cardId = await issued();
        const asked = { ...live, body: { amount: 500 }, idempotencyKey: randomUUID() };
        const { status } = await killedAt(place, () =>
          partner.call('POST', `/cards/${cardId}/${path}`, asked),
        );
        assert.equal(status, 201);
        const { json } = await partner.call('GET', `/cards/${cardId}`, live);
        assert.equal(json.balance, balance);
      });
    }
  }

  for (const place of STATUS_CHANGES) {
    it(`freezes the card if it is killed -9 ${describePlace(place)}`, async () => {
      const cardId = await issued();
      const freeze = { ...live, idempotencyKey: randomUUID() };
      const { status, json } = await killedAt(place, () =>
        partner.call('POST', `/cards/${cardId}/freeze`, freeze),
      );
      assert.deepEqual([status, json.status], [200, 'frozen']);
      assert.equal((await lithicCard(fake, stack, cardId)).state, 'PAUSED');
    });
  }

  describe('and an API that decides for it', () => {
    let api: Child | undefined;
    afterEach(async () => {
      if (api !== undefined) await kill(api);
      enrol(fake, stack);
    });

    for (const when of ['before', 'before commit', 'after commit'] as const) {
      it(`hold the amount once at most if the API is killed -9 ${when} the decision's row`, async () => {
        const cardId = await issued();
        const { markerFile, ...dying } = dieAt(folder, 'INSERT INTO card_authorization', when);
        const config = { ...stack.config, port: await freePort() };
        api = await startApiProcess(config, folder, dying);
        const { options } = fake.program.posts;
        enrol(fake, { ...stack, config });
        const card = await lithicCard(fake, stack, cardId);
        const transaction = await fake.program.authorize({ card, amount: 300 });
        assert.ok(existsSync(markerFile));
        // Nobody answered, so Lithic declined.
        assert.deepEqual(transaction.events[0]?.detailed_results, ['CUSTOMER_ASA_TIMEOUT']);
        options.receiverUrl = `http://${stack.config.host}:${stack.config.port}`;
        await stack.startWorker();
        await allTaken(fake, stack);
        const { json } = await partner.call('GET', `/cards/${cardId}`, live);
        assert.deepEqual([json.balance, json.available_balance], [1_000, 1_000]);
        const { data } = (await partner.call('GET', `/cards/${cardId}/transactions`, live)).json;
        assert.deepEqual(
          data.map(({ type }: { type: string }) => type),
          ['decline'],
        );
      });
    }
  });

  it('takes the events that came while no worker ran', async () => {
    const cardId = await issued();
    const card = await lithicCard(fake, stack, cardId);
    const transaction = await fake.program.authorize({ card, amount: 300 });
    fake.program.record(transaction, { type: 'CLEARING', amount: 300 });
    await until('both are kept', async () => fake.program.posts.events.length >= 2);
    await stack.startWorker();
    await allTaken(fake, stack);
    const { json } = await partner.call('GET', `/cards/${cardId}`, live);
    assert.deepEqual([json.balance, json.available_balance], [700, 700]);
  });
});
