import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { lowestId } from '../../../crypto/new-id.ts';
import { freePort } from '../../../dev/free-port.ts';
import type { Child } from '../../../dev/process/child.ts';
import { createCard } from '../../support/cards.ts';
import { kill, scratchFolder, startApiProcess } from '../../support/crash/processes.ts';
import { fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';

/** `REPORT_ROWS=1000000` for the measurement of docs/decisions/reports-are-streamed.md. */
const ROWS = Number(process.env.REPORT_ROWS || 200_000);
const HOUR_MS = 3_600_000;
const MOST_MIB = 100;

describe(`a report of ${ROWS} lines`, function () {
  this.timeout(180_000 + ROWS);
  let stack: TestStack;
  let partner: TestPartner;
  let api: Child;
  let port: number;
  before(async function () {
    if (process.platform !== 'linux') return this.skip();
    stack = await startTestStack({}, { worker: false });
    partner = await fundedPartner(stack);
    const cardId = (await createCard(partner, { amount: 1_000 })).json.id;
    const from = new Date(Date.now() - HOUR_MS / 2);
    await asOwner(
      stack,
      `INSERT INTO card_transaction (id, partner_id, mode, card_id, network_transaction_id, requested_type, forced, type,
         amount_cents, fees, merchant_name, charged_to, card_balance_after_cents, created_at)
       SELECT substr($1, 1, 14) || lpad(n::text, 16, '0'), $2, 'test', $3, gen_random_uuid(), 'purchase', false, 'purchase',
         n, '[]', 'A merchant', 'card', 0, $4 FROM generate_series(1, $5::integer) n`,
      [lowestId('txn', from), partner.id, cardId, from, ROWS],
    );
    port = await freePort();
    api = await startApiProcess({ ...stack.config, port }, scratchFolder());
  });
  after(async () => {
    if (api !== undefined) await kill(api);
    await stack?.stop();
  });

  const period = new URLSearchParams({
    from: new Date(Date.now() - HOUR_MS).toISOString(),
    to: new Date(Date.now() + HOUR_MS).toISOString(),
  });

  /** @param onLines is told how many lines have come since the last time, at most every 10,000 */
  async function readLines(name: string, onLines: (lines: number) => void): Promise<number> {
    const outgoing = httpRequest({
      ...{ host: '127.0.0.1', port, path: `/v1/reports/${name}?${period}` },
      headers: { authorization: `Bearer ${partner.keys.test}` },
    }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, 200);
    let lines = 0;
    let untold = 0;
    for await (const part of response as AsyncIterable<Buffer>) {
      for (const byte of part) if (byte === 10) untold += 1;
      if (untold < 10_000) continue;
      lines += untold;
      onLines(untold);
      untold = 0;
    }
    assert.ok(response.complete);
    return lines + untold;
  }

  it('takes no more memory the longer it is', async () => {
    const before = residentMib(api.pid);
    let lines = 0;
    // V8 lets garbage wait for a while, so a process grows before it stays as it is.
    let inFirstHalf = 0;
    let inSecondHalf = 0;
    const total = await readLines('card_transactions', (more) => {
      lines += more;
      const mib = residentMib(api.pid);
      if (lines < ROWS / 2) inFirstHalf = Math.max(inFirstHalf, mib);
      else inSecondHalf = Math.max(inSecondHalf, mib);
    });
    assert.equal(total, ROWS + 1);
    const measured = `${before} MiB before, ${inFirstHalf} in the first half, ${inSecondHalf} in the second`;
    if (process.env.REPORT_ROWS) console.log(measured);
    assert.ok(inSecondHalf - inFirstHalf < MOST_MIB, measured);
  });
});

function residentMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1_024);
}
