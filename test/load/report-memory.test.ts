import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { freePort } from '../../dev/free-port.ts';
import type { Child } from '../../dev/process/child.ts';
import { lowestId } from '../../platform/crypto/new-id.ts';
import { createCard } from '../support/cards.ts';
import { kill, scratchFolder, startApiProcess } from '../support/crash/processes.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

/** `REPORT_ROWS=1000000` for the measurement of docs/decisions/reports-are-streamed.md. */
const ROWS = Number(process.env.REPORT_ROWS || 100_000);
const HOUR_MS = 3_600_000;
/** A report that kept a tenth of its lines would exceed it. */
const MOST_KEPT_BYTES = 4 * 1_024 * 1_024;

describe(`a report of ${ROWS} lines`, function () {
  this.timeout(180_000 + ROWS);
  let stack: TestStack;
  let partner: TestPartner;
  let api: Child;
  let port: number;
  let heapFile: string;
  before(async function () {
    if (process.platform !== 'linux') return this.skip();
    stack = await startTestStack({}, { worker: false });
    partner = await fundedPartner(stack);
    const cardId = (await createCard(partner, { amount: 1_000 })).json.id;
    const from = new Date(Date.now() - HOUR_MS / 2);
    await asOwner(
      stack,
      `INSERT INTO card_transaction (id, partner_id, mode, card_id, network_transaction_id, type,
         amount_cents, fees, merchant_name, charged_to, card_balance_after_cents, created_at)
       SELECT substr($1, 1, 14) || lpad(n::text, 16, '0'), $2, 'test', $3, gen_random_uuid(), 'purchase',
         n, '[]', 'A merchant', 'card', 0, $4 FROM generate_series(1, $5::integer) n`,
      [lowestId('txn', from), partner.id, cardId, from, ROWS],
    );
    port = await freePort();
    const folder = scratchFolder();
    heapFile = join(folder, 'heap');
    writeFileSync(heapFile, '');
    api = await startApiProcess({ ...stack.config, port }, folder, {
      execArgv: ['--expose-gc', '--import', './test/support/heap-on-signal.ts'],
      env: { HEAP_FILE: heapFile },
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

  /** What the API has in use after a collection of garbage. */
  async function usedBytes(): Promise<number> {
    const read = () => readFileSync(heapFile, 'utf8').split('\n').filter(Boolean).map(Number);
    const before = read().length;
    process.kill(api.pid, 'SIGUSR2');
    await until('the API has counted', () => read().length > before);
    return read().at(-1) ?? Number.NaN;
  }

  /** Reads the whole report. @param onLines is told how many lines have come, and is waited for */
  async function readLines(onLines: (lines: number) => Promise<void>): Promise<void> {
    const outgoing = httpRequest({
      host: '127.0.0.1',
      port,
      path: `/v1/reports/card_transactions?${period}`,
      headers: { authorization: `Bearer ${partner.keys.test}` },
    }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, 200);
    let lines = 0;
    for await (const part of response as AsyncIterable<Buffer>) {
      for (const byte of part) if (byte === 10) lines += 1;
      await onLines(lines);
    }
    assert.ok(response.complete);
    assert.equal(lines, ROWS + 1);
  }

  it('keeps nothing of the lines that it has sent', async () => {
    // The first one also fills caches and compiles code.
    await readLines(async () => {});
    const resident = [residentMib(api.pid)];
    const used: number[] = [];
    const shares = [0.2, 0.95];
    await readLines(async (lines) => {
      if (used.length === shares.length || lines < ROWS * (shares[used.length] ?? 0)) return;
      resident.push(residentMib(api.pid));
      used.push(await usedBytes());
    });
    const [early = Number.NaN, late = Number.NaN] = used;
    const measured = `${early} bytes used after a fifth of it, ${late} near its end; MiB resident: ${resident.join(', ')}`;
    if (process.env.REPORT_ROWS) console.log(measured);
    assert.ok(late - early < MOST_KEPT_BYTES, measured);
  });
});

function residentMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1_024);
}
