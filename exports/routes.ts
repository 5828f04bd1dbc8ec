import { z } from 'zod';
import { TEST_CLOCK } from '../accounts/examples.ts';
import { TestClockResource } from '../accounts/resource.ts';
import { advanceTestClock, readTestClock } from '../accounts/test-clock.ts';
import { keyedRequest, replyOnce } from '../api/http/keyed.ts';
import { declare, resource } from '../api/http/route.ts';
import type { TestClocks } from '../api/http/test-clocks.ts';
import { ApiError } from '../domain/api-error.ts';
import { readAccountMonth } from '../ledger/account-month.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { STATEMENT } from './examples.ts';
import { presentStatement, StatementResource } from './statement-resource.ts';

const getStatement = declare({
  method: 'get',
  path: '/statements/:month',
  scope: 'balance:read',
  operationId: 'statements.get',
  summary: 'Retrieve a statement',
  description:
    'What changed your balance and the money on your cards in a month, by type. The current month is shown up to now.',
  responses: { 200: StatementResource },
  examples: { 200: STATEMENT },
  errors: ['statement_not_found'],
});

export const statements = resource({ getStatement }, ({ readList }: { readList: ReadList }) => ({
  async getStatement({ caller, params: { month = '' } }) {
    const found = await readList((from) => readAccountMonth(from.em.fork(), caller, month));
    if (found === null) throw new ApiError('statement_not_found');
    return { status: 200, body: presentStatement(month, caller.mode, found) };
  },
}));

const MAX_ADVANCE_SECONDS = 31_536_000;
const IN_RANGE = `must be between 1 and ${MAX_ADVANCE_SECONDS}`;

const AdvanceRequest = z
  .strictObject({
    seconds: z
      .int({
        error: ({ code }) => (code === 'invalid_type' ? 'must be an integer number of seconds' : IN_RANGE),
      })
      .min(1, IN_RANGE)
      .max(MAX_ADVANCE_SECONDS, IN_RANGE)
      .describe('How far to advance it: at most 31,536,000 seconds, which is a year.'),
  })
  .meta({ id: 'AdvanceTestClockRequest', description: 'How far to advance the test clock.' });

const getTestClock = declare({
  method: 'get',
  path: '/test/clock',
  operationId: 'testHelpers.getClock',
  summary: 'Retrieve the test clock',
  description: 'What time it is in your test mode, and whether what the last advance made due has begun.',
  mode: 'test',
  scope: 'test:write',
  responses: { 200: TestClockResource },
  examples: { 200: TEST_CLOCK },
});

const advanceClock = declare({
  method: 'post',
  path: '/test/clock/advance',
  operationId: 'testHelpers.advanceClock',
  summary: 'Advance the test clock',
  description:
    'Moves the time of your test mode forward. What is due by then begins within 10 seconds, in any order: ' +
    'webhook retries, expiring authorizations, test deposits and notices of expiring API keys. Limits and spending intervals follow ' +
    'it, too. It never goes back, can be at most ten years ahead, and can be advanced 1,000 times in an hour.',
  mode: 'test',
  scope: 'test:write',
  idempotencyKey: 'accepted',
  body: AdvanceRequest,
  responses: { 200: TestClockResource },
  examples: { body: { seconds: 30 }, 200: { ...TEST_CLOCK, status: 'advancing' } },
  errors: ['limit_exceeded'],
});

export interface TestClockDependencies extends CommandContext {
  testClocks: TestClocks;
  /** Called after a commit, so that what is due now is found without delay. */
  eventsWritten(): void;
}

export const testClock = resource({ getTestClock, advanceClock }, (dependencies: TestClockDependencies) => ({
  getTestClock: async ({ caller }) => ({
    status: 200,
    body: await readTestClock(dependencies.orm.em.fork(), caller.partnerId),
  }),

  async advanceClock(input) {
    const { partnerId } = input.caller;
    const request = keyedRequest('advance_test_clock', input, null);
    const response = await advanceTestClock(dependencies, request, input.body.seconds);
    await dependencies.testClocks.advanced(partnerId);
    return replyOnce(response, dependencies.eventsWritten);
  },
}));
