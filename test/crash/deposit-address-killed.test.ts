import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { asOwner } from '../api/support/as-owner.ts';
import { TEST_TRON } from '../support/deposits.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { askUntilEnd, ENDS, type End } from './support/ask-until-end.ts';
import { inParallel } from './support/in-parallel.ts';
import { scratchFolder } from './support/processes.ts';

const PATH = '/funding/deposit-address';

describe('a deposit address whose API process is killed -9, or loses its connection, around the COMMIT', function () {
  this.timeout(240_000);
  let stack: TestStack;
  let folder: string;
  let ends: Promise<void>[];
  const kinds = Object.keys(ENDS) as End[];
  before(async () => {
    folder = scratchFolder();
    stack = await startTestStack({ logLevel: 'error', tron: TEST_TRON }, { worker: false });
    ends = inParallel(
      4,
      kinds.map((end) => () => run(end)),
    );
  });
  after(async () => {
    const rows = await asOwner<{ n: number }>(stack, 'SELECT address_index AS n FROM deposit');
    assert.equal(rows.length, kinds.length);
    assert.equal(new Set(rows.map(({ n }) => n)).size, kinds.length);
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  kinds.forEach((end, index) => {
    it(`${end}: one deposit, and a retry gets its answer`, () => ends[index]);
  });

  async function run(end: End): Promise<void> {
    const partner = await stack.createPartner();
    const body = { amount: 2_500 };
    const key = randomUUID();
    await askUntilEnd(stack.config, folder, end, { mode: 'live', partner, path: PATH, body, key });

    const options = { mode: 'live', body, idempotencyKey: key } as const;
    const retry = await partner.call('POST', PATH, options);
    assert.equal(retry.status, 201, retry.text);
    assert.equal(retry.headers.get('idempotent-replayed') === 'true', ENDS[end]);
    const again = await partner.call('POST', PATH, options);
    assert.deepEqual([again.status, again.text], [201, retry.text]);
    const { json } = await partner.call('GET', '/funding/deposits', { mode: 'live' });
    assert.deepEqual(json.data, [retry.json]);
  }
});
