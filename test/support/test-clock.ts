import assert from 'node:assert/strict';
import type { TestPartner } from './stack.ts';
import { until } from './until.ts';

/** The account's clock, as the API shows it. */
export async function readClock(partner: TestPartner) {
  const { status, json, text } = await partner.call('GET', '/test/clock');
  assert.equal(status, 200, text);
  return json;
}

/** @returns the clock, so much further ahead */
export async function advanceClock(partner: TestPartner, seconds: number) {
  const { status, json, text } = await partner.call('POST', '/test/clock/advance', { body: { seconds } });
  assert.equal(status, 200, text);
  return json;
}

/** Waits until all that was due has begun. */
export const untilReady = (partner: TestPartner) =>
  until('what was due has begun', async () => (await readClock(partner)).status === 'ready');
