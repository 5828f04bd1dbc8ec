import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { createApiKey } from '../../accounts/api-keys.ts';
import { creditFaucet } from '../../accounts/faucet.ts';
import { negotiateLimits, updatePartner } from '../../accounts/partners.ts';
import { advanceTestClock, readTestClock } from '../../accounts/test-clock.ts';
import { admitReveal } from '../../cards/admit-reveal.ts';
import { issueInTestMode } from '../../cards/issue.ts';
import { transferInTestMode } from '../../cards/transfers/begin.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { Tenant } from '../../domain/mode.ts';
import { NOWHERE } from '../../domain/payment.ts';
import { checkBooks } from '../../exports/check-books.ts';
import { expireAuthorizations, findDueAuthorizations } from '../../payments/expire.ts';
import { simulateOnAuthorization, simulateOnCard } from '../../payments/simulate.ts';
import { recordAttempts, takeDeliveries } from '../../webhooks/deliveries.ts';
import { rotateEndpointSecret } from '../../webhooks/endpoint-secrets.ts';
import { queueDueRetries } from '../../webhooks/retries.ts';
import { sendPing } from '../../webhooks/send-on-request.ts';
import { keyedRequest, openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { asOwner } from '../support/postgres.ts';
import { propertyRuns } from '../support/property-runs.ts';
import { accountWithEndpoint } from '../support/webhooks/accounts.ts';

const DAY_SECONDS = 86_400;
const ENDED = 'card.authorization.updated';
// Retries and expiries are due after a multiple of two hours. The sum of a script's advances is five minutes or more away from
// one, however many there are. So it does not matter that a busy machine takes seconds for a step.
const DELAYS_MS = [7_200_000, 14_400_000, 28_800_000, 86_400_000];
const HOLD_MS = 86_400_000;
const ADVANCES = [0, 7_200, 14_400, DAY_SECONDS, 7 * DAY_SECONDS, 31 * DAY_SECONDS].map(
  (seconds) => seconds + 310,
);
/** How far apart the two servers' times may be: they run the same step one after the other. */
const TOLERANCE_MS = 120_000;

const ASKED = [
  'issue',
  'topUp',
  'purchase',
  'authorize',
  'capture',
  'credit',
  'reveal',
  'ping',
  'rotate',
] as const;

type Step =
  | { kind: 'advance'; seconds: number }
  | { kind: 'receiver'; works: boolean }
  | { kind: (typeof ASKED)[number]; which: number; amount: number };
const advance = { kind: fc.constant('advance' as const), seconds: fc.constantFrom(...ADVANCES) };
const receiver = { kind: fc.constant('receiver' as const), works: fc.boolean() };
const asked = {
  kind: fc.constantFrom(...ASKED),
  which: fc.nat(3),
  amount: fc.integer({ min: 100, max: 2_000 }),
};
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record(advance) },
  { weight: 1, arbitrary: fc.record(receiver) },
  { weight: 8, arbitrary: fc.record(asked) },
);

const RealDate = Date;

/** The service's commands, and what its workers do, on a database whose time passes in one of two ways. */
abstract class Server {
  readonly commands: TestCommands;
  apiKeyId = '';
  tenant: Tenant = { partnerId: '', mode: 'test' };
  cards: string[] = [];
  authorizations: string[] = [];
  receiverWorks = false;

  constructor(commands: TestCommands) {
    this.commands = commands;
  }

  abstract advance(seconds: number): Promise<void>;
  /** Runs with the time as this server has it. */
  abstract within<T>(work: () => Promise<T>): Promise<T>;
  protected abstract queueDue(): Promise<number>;

  /** What time it is for the account. */
  async now(): Promise<number> {
    const { rows } = await this.commands.owner.query<{ at: Date }>("SELECT account_now($1, 'test') AS at", [
      this.tenant.partnerId,
    ]);
    return rows[0]?.at.getTime() ?? 0;
  }

  begin(): Promise<void> {
    return this.within(async () => {
      const { commands } = this;
      const { partnerId } = await accountWithEndpoint(commands, { amountCents: 100_000_000 });
      this.tenant = { partnerId, mode: 'test' };
      this.apiKeyId = (await createApiKey(commands.operator, { partnerId, mode: 'test', name: null })).id;
      [this.cards, this.authorizations, this.receiverWorks] = [[], [], false];
      await negotiateLimits(commands.operator, partnerId, { maxIssuedPerDayCents: 6_000 });
      await updatePartner(commands.operator, partnerId, { secureDetailsEnabled: true });
    });
  }

  /** @returns what the partner is told */
  async run(one: Step): Promise<unknown> {
    if (one.kind === 'advance') {
      await this.advance(one.seconds);
      return null;
    }
    if (one.kind === 'receiver') {
      this.receiverWorks = one.works;
      return null;
    }
    const told = await this.within(() => this.#ask(one)).catch((error: unknown) => {
      if (error instanceof ApiError) return error.code;
      throw error;
    });
    await this.within(() => this.work());
    return told;
  }

  async #ask({ kind, which, amount }: Exclude<Step, { kind: 'advance' | 'receiver' }>): Promise<unknown> {
    const { context } = this.commands;
    const { tenant } = this;
    const card = this.cards[which % Math.max(1, this.cards.length)] ?? 'card_0';
    const keyed = <Operation extends Parameters<typeof keyedRequest>[0]>(
      operation: Operation,
      cardId: string | null,
    ) => keyedRequest(operation, cardId, {}, tenant);
    const statusOf = ({ response }: { response: { status: number; body: string } }) => {
      const { status, decline_reason, error } = JSON.parse(response.body);
      return [response.status, status, decline_reason, error?.code];
    };
    const messageId = randomUUID();
    const asked = { amountCents: amount, isFinal: true, merchant: NOWHERE };
    switch (kind) {
      case 'issue': {
        const request = keyed('create_card', null);
        const spending_controls = {
          spending_limits: [{ amount: 1_500, interval: 'daily' as const, categories: null }],
        };
        const body = { amount, external_ref: randomUUID(), spending_controls };
        const answer = await issueInTestMode(context, request, body as never);
        if (answer.response.status === 201) this.cards.push(request.resourceId);
        return statusOf(answer);
      }
      case 'topUp':
        return statusOf(await transferInTestMode(context, keyed('top_up_card', card), { amount }));
      case 'purchase':
        return statusOf(
          await simulateOnCard(context, keyed('simulate_transaction', card), {
            message: { id: messageId, type: 'purchase', ...asked },
            networkPaymentId: null,
            ttlMs: 0,
            isSimulation: true,
          }),
        );
      case 'authorize': {
        const answer = await simulateOnCard(context, keyed('authorize_card', card), {
          message: { id: messageId, type: 'authorization', ...asked },
          networkPaymentId: null,
          ttlMs: HOLD_MS,
        });
        this.authorizations.push(JSON.parse(answer.response.body).id ?? 'auth_0');
        return statusOf(answer);
      }
      case 'capture': {
        const id = this.authorizations[which % Math.max(1, this.authorizations.length)] ?? 'auth_0';
        const asked = { type: 'clearing', amountCents: 10, messageId, ttlMs: HOLD_MS } as const;
        const request = keyed('capture_authorization', null);
        return statusOf(await simulateOnAuthorization(context, request, id, asked));
      }
      case 'credit': {
        const answers = [];
        for (let i = 0; i < 25; i++) {
          const answer = creditFaucet(context, keyed('credit_faucet', null), 1);
          answers.push(await answer.then(statusOf, (error: ApiError) => error.code));
        }
        return answers;
      }
      case 'reveal': {
        const from = { apiKeyId: this.apiKeyId, requestId: 'req', clientAddress: '::1' };
        return (await admitReveal(context, { ...tenant, ...from, cardId: card })).status;
      }
      case 'ping':
        await sendPing(context.orm, tenant, null);
        return null;
      case 'rotate':
        await rotateEndpointSecret(
          { ...context, actor: 'test' },
          { partnerId: tenant.partnerId, modes: ['test'], endpointId: null },
        );
        return null;
    }
  }

  /** What the workers do, until nothing is left to do now. */
  async work(): Promise<void> {
    for (let done = 1; done > 0; )
      done = (await this.queueDue()) + (await this.#send()) + (await this.#expire());
  }

  async #send(): Promise<number> {
    const { context } = this.commands;
    const slots = { freeSlots: {}, initialSlots: 8, freeReplaySlots: {}, replaySlots: 4 };
    const taken = await takeDeliveries(context.orm, { ...slots, limit: 100, leaseMs: 60_000, after: null });
    const attempts = taken.map(({ event_id: eventId, endpoint_id: endpointId }) => ({
      ...{ eventId, endpointId, startedAt: new Date(), durationMs: 1, answerStart: null, isGone: false },
      ...(this.receiverWorks ? { httpStatus: 200, error: null } : { httpStatus: 503, error: 'http_503' }),
    }));
    if (attempts.length > 0) await recordAttempts(context, attempts, DELAYS_MS, 4_000);
    return attempts.length;
  }

  async #expire(): Promise<number> {
    const { orm } = this.commands.context;
    const due = await findDueAuthorizations(orm.em.fork(), { except: [], limit: 100 });
    if (due.length === 0) return 0;
    return (await expireAuthorizations(orm, this.tenant, due)).length;
  }

  /** All of the account's rows that time can change. Times are in milliseconds from now. */
  async state(): Promise<{ times: (number | null)[]; [rows: string]: unknown }> {
    const { owner } = this.commands;
    const of = async (statement: string) => (await owner.query(statement, [this.tenant.partnerId])).rows;
    const now = await this.now();
    const ahead = (time: Date | null) => time && time.getTime() - now;
    const endpoints = await of(
      'SELECT previous_secret_expires_at AS until FROM webhook_endpoint WHERE partner_id = $1',
    );
    const deliveries = await of(`SELECT d.status, d.type, d.attempt_count, d.next_attempt_at, e.created_at
      FROM delivery d JOIN event e ON e.id = d.event_id WHERE d.partner_id = $1 ORDER BY e.id`);
    const expiring =
      await of(`SELECT status, held_cents, settled_cents, created_at, expires_at FROM card_authorization
      WHERE partner_id = $1 ORDER BY id`);
    // What an expiry writes is dated when it is done: after the jump, and not when it was due. So it has its own schedule.
    const scheduled = deliveries.filter(({ type }) => type !== ENDED);
    const times = [
      ...endpoints.map(({ until }) => ahead(until)),
      // Retries are due from when they were due; of one that is being made, it is when that was.
      ...scheduled.flatMap(({ created_at: created, next_attempt_at: next, status }) => [
        ahead(created),
        status === 'retrying' ? ahead(next) : null,
      ]),
      ...expiring.flatMap(({ created_at: created, expires_at: expires }) => [ahead(created), ahead(expires)]),
    ];
    return {
      times,
      ended: deliveries.length - scheduled.length,
      deliveries: scheduled.map(({ type, status, attempt_count }) => ({ type, status, attempt_count })),
      authorizations: expiring.map(({ status, held_cents, settled_cents }) => [
        status,
        held_cents,
        settled_cents,
      ]),
      cards: await of(`SELECT k.status, a.posted, a.held FROM card k JOIN ledger.account a ON a.card_id = k.id
        WHERE k.partner_id = $1 ORDER BY k.id`),
      balance: await of(
        `SELECT posted, held FROM ledger.account WHERE partner_id = $1 AND kind = 'prepaid' ORDER BY mode`,
      ),
    };
  }
}

/** In real time, with the account's sandbox clock. */
class WithClock extends Server {
  within<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  async advance(seconds: number): Promise<void> {
    const request = keyedRequest('advance_test_clock', null, { seconds }, this.tenant);
    const { response } = await advanceTestClock(this.commands.context, request, seconds);
    assert.equal(response.status, 200, response.body);
    await this.work();
    const { status } = await readTestClock(this.commands.context.orm.em.fork(), this.tenant.partnerId);
    assert.equal(status, 'ready');
  }

  protected async queueDue(): Promise<number> {
    return (await queueDueRetries(this.commands.context.orm)).byClock;
  }
}

/** Without one: the clocks of the process and of the database are moved, to each time at which something is due in turn. */
class WithMovedTime extends Server {
  #aheadMs = 0;

  static async open(): Promise<WithMovedTime> {
    const commands = await openCommands((databaseUrl) =>
      asOwner(
        databaseUrl,
        `
      CREATE SCHEMA moved;
      CREATE TABLE moved.ahead (by interval NOT NULL);
      INSERT INTO moved.ahead VALUES ('0');
      CREATE FUNCTION moved.now() RETURNS timestamptz LANGUAGE sql STABLE
        AS 'SELECT pg_catalog.now() + by FROM moved.ahead';
      CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
        AS 'SELECT pg_catalog.clock_timestamp() + by FROM moved.ahead';
      GRANT USAGE ON SCHEMA moved TO PUBLIC;
      GRANT SELECT ON moved.ahead TO PUBLIC;
      GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA moved TO PUBLIC;
      CREATE OR REPLACE FUNCTION public.account_now(account text, of_mode text) RETURNS timestamptz LANGUAGE sql STABLE
        RETURN public.account_time(account, of_mode, moved.now());
      ALTER TABLE card_reveal ALTER created_at SET DEFAULT moved.now();
      ALTER DATABASE ${new URL(databaseUrl).pathname.slice(1)} SET search_path = moved, pg_catalog, public`,
      ),
    );
    return new WithMovedTime(commands);
  }

  async within<T>(work: () => Promise<T>): Promise<T> {
    const aheadMs = this.#aheadMs;
    globalThis.Date = class extends RealDate {
      constructor(...given: ConstructorParameters<typeof RealDate> | []) {
        if (given.length === 0) super(RealDate.now() + aheadMs);
        else super(...(given as [number]));
      }
      static override now = () => RealDate.now() + aheadMs;
    } as DateConstructor;
    try {
      return await work();
    } finally {
      globalThis.Date = RealDate;
    }
  }

  /** At the hour of the day that it is, whatever earlier scripts moved the clocks by: days end at the same moments on both servers. */
  override async begin(): Promise<void> {
    await this.#moveTo(Math.ceil(this.#aheadMs / (DAY_SECONDS * 1_000)) * DAY_SECONDS * 1_000);
    await super.begin();
  }

  async #moveTo(aheadMs: number): Promise<void> {
    this.#aheadMs = aheadMs;
    await this.commands.owner.query("UPDATE moved.ahead SET by = $1 * interval '1 millisecond'", [aheadMs]);
    await this.within(() => this.work());
  }

  async advance(seconds: number): Promise<void> {
    const untilMs = this.#aheadMs + seconds * 1_000;
    for (;;) {
      const { rows } = await this.commands.owner.query<{ due: Date | null }>(
        `SELECT least((SELECT min(next_attempt_at) FROM delivery WHERE partner_id = $1 AND status = 'retrying'),
           (SELECT min(expires_at) FROM card_authorization WHERE partner_id = $1 AND status = 'pending')) AS due`,
        [this.tenant.partnerId],
      );
      const dueMs = (rows[0]?.due?.getTime() ?? Number.POSITIVE_INFINITY) - RealDate.now() + 2;
      if (dueMs >= untilMs) break;
      await this.#moveTo(Math.max(dueMs, this.#aheadMs));
    }
    await this.#moveTo(untilMs);
  }

  override async now(): Promise<number> {
    return RealDate.now() + this.#aheadMs;
  }

  protected async queueDue(): Promise<number> {
    return (await queueDueRetries(this.commands.context.orm)).overdue;
  }
}

const near = (timeMs: number, otherMs: number) => Math.abs(timeMs - otherMs) < TOLERANCE_MS;

describe('a sandbox clock that is advanced', () => {
  let clock: WithClock;
  let moved: WithMovedTime;
  before(async () => {
    clock = new WithClock(await openCommands());
    moved = await WithMovedTime.open();
  });
  after(async () => {
    await clock.commands.close();
    await moved.commands.close();
  });

  it('leads where the same script leads on a server whose own clock was moved', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 22 }), async (steps) => {
        await clock.begin();
        await moved.begin();
        for (const [index, one] of steps.entries()) {
          const [told, expected] = [await clock.run(one), await moved.run(one)];
          assert.deepEqual(told, expected, `${index}: ${JSON.stringify(one)}`);
        }
        const { times, ...rows } = await clock.state();
        const { times: expectedTimes, ...expectedRows } = await moved.state();
        assert.deepEqual(rows, expectedRows);
        for (const [index, expected] of expectedTimes.entries()) {
          const time = times[index] ?? null;
          const isSame = time === null || expected === null ? time === expected : near(time, expected);
          assert.ok(isSame, `time ${index} is ${time} ms from now, and on the other server ${expected} ms`);
        }
      }),
      { numRuns: propertyRuns(3) },
    );
    assert.deepEqual(await checkBooks(clock.commands.context.orm.em.fork()), []);
  });
});
