import { z } from 'zod';
import { type AccountClock, shownTime } from '../domain/account-clock.ts';
import { ObjectType } from '../domain/fields.ts';

/** docs/partners/testing.md */
export const TestClockResource = z
  .object({
    object: ObjectType('test_clock'),
    now: z.iso.datetime().describe('What time it is in your test mode.'),
    offset_seconds: z
      .int()
      .min(0)
      .describe('How far it is ahead of real time: all the seconds you have advanced it by.'),
    status: z
      .enum(['ready', 'advancing'])
      .describe('`advancing` until everything that was due by the last advance has begun.'),
    mode: z.literal('test').describe('Always `test`.'),
  })
  .meta({ id: 'TestClock', description: "Your sandbox's clock." });
export type TestClockResource = z.infer<typeof TestClockResource>;

export const presentTestClock = (clock: AccountClock, isAdvancing: boolean): TestClockResource => ({
  object: 'test_clock',
  now: shownTime(clock).toISOString(),
  offset_seconds: clock?.offsetSeconds ?? 0,
  status: isAdvancing ? 'advancing' : 'ready',
  mode: 'test',
});
