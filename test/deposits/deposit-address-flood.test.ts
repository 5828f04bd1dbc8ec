import assert from 'node:assert/strict';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

/** Fewer than an account can have waiting, so that none waits too long on a slow machine. */
const AT_ONCE = 80;
const REQUESTS = 10;

describe('a flood of requests for deposit addresses by one account', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack('api');
  });

  it("delays another account's cards by a few requests at most, and each request gets its own address", async () => {
    const flooding = await stack.createPartner('Flooding');
    const quiet = await fundedPartner(stack, 1_000_000);
    // The first request of a process compiles code and prepares statements, which takes longer than any wait for others.
    assert.equal((await createCard(quiet, { amount: 1_000 })).status, 201);
    const addresses: string[] = [];
    let isOver = false;
    const flood = Array.from({ length: AT_ONCE }, async () => {
      do {
        const { status, json, text } = await flooding.call('POST', '/funding/deposit-address', {
          mode: 'live',
          body: { amount: 2_500 },
        });
        assert.equal(status, 201, text);
        addresses.push(json.address);
      } while (!isOver);
    });
    // The first round of the flood is ahead of the first card, and opens its connections.
    await until('the flood is under way', async () => addresses.length >= AT_ONCE);
    const servedMeanwhile: number[] = [];
    for (let request = 0; request < REQUESTS; request++) {
      const before = addresses.length;
      const { status, text } = await createCard(quiet, { amount: 1_000 });
      assert.equal(status, 201, text);
      servedMeanwhile.push(addresses.length - before);
    }
    isOver = true;
    await Promise.all(flood);
    // Behind all that were ahead of it, it would have waited for all of them.
    for (const served of servedMeanwhile)
      assert.ok(served < AT_ONCE / 2, `addresses given out during each request: ${servedMeanwhile}`);
    assert.equal(new Set(addresses).size, addresses.length);
  });
});
