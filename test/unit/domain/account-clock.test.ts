import assert from 'node:assert/strict';
import { presentTestClock } from '../../../accounts/resource.ts';
import { accountTime } from '../../../domain/account-clock.ts';

describe("an account's clock", () => {
  const clockAdvanced = (inMs: number) => ({
    offsetSeconds: 86_400,
    advances: [{ atMs: Date.now() + inMs, secondsBefore: 0 }],
  });

  it('shows at least the time that an advance has set, if the host is behind the server that dated it', () => {
    const clock = clockAdvanced(50);
    const atMs = clock.advances[0]?.atMs ?? 0;
    assert.equal(presentTestClock(clock, true).now, new Date(atMs + 86_400_000).toISOString());
    assert.ok(accountTime(clock).getTime() < atMs, 'it is not yet that time');
  });

  it('runs at the pace of real time after an advance', () => {
    const aheadMs = Date.parse(presentTestClock(clockAdvanced(-5_000), false).now) - Date.now();
    assert.ok(aheadMs <= 86_400_000 && aheadMs > 86_400_000 - 5_000, `${aheadMs}`);
  });
});
