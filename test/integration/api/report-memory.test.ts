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
    api = await startApiProcess({ ...stack.config, port }, scratchFolder(), {
      execArgv: ['--max-old-space-size=200'],
    });
  });
  after(async () => {
    if (api !== undefined) await kill(api);
    await stack?.stop();
  });

  const period = new URLSearchParams({
    from: new Date(Date.now() - HOUR_MS).toISOString(),
    to: new Date(Date.now() + HOUR_MS).toISOString(),
  });

  /** Reads a report slowly enough for the process to wait for its reader again and again. */
  async function readLines(name: string, whileReading: () => void): Promise<number> {
    const outgoing = httpRequest({
      ...{ host: '127.0.0.1', port, path: `/v1/reports/${name}?${period}` },
      headers: { authorization: `Bearer ${partner.keys.test}` },
    }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, 200);
    let lines = 0;
    for await (const part of response as AsyncIterable<Buffer>) {
      for (const byte of part) if (byte === 10) lines += 1;
      whileReading();
    }
    assert.ok(response.complete);
    return lines;
  }

  it('takes no more memory than a short one', async () => {
    // What the process needs once, it has after the first report.
    await readLines('deposits', () => {});
    const before = residentMib(api.pid);
    let most = 0;
    let parts = 0;
    const lines = await readLines('card_transactions', () => {
      parts += 1;
      if (parts % 100 === 0) most = Math.max(most, residentMib(api.pid));
      if (parts % 200 === 0) console.log(parts, residentMib(api.pid));
    });
    assert.equal(lines, ROWS + 1);
    if (process.env.REPORT_ROWS) console.log(`${before} MiB before, ${most} MiB at most`);
    assert.ok(most > 0 && most - before < MOST_MIB, `${before} MiB before, ${most} MiB at most`);
  });
});

function residentMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1_024);
}
