import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { revokeApiKey } from '../../accounts/api-keys.ts';
import { suspendPartner } from '../../accounts/partners.ts';
import { lowestId } from '../../platform/crypto/new-id.ts';
import { query } from '../../platform/db/sql.ts';
import { expectError } from '../support/api/answers.ts';
import { withNewKey } from '../support/api/keys.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { aroundNow, rowsOf } from '../support/reports.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { type CallOptions, startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
/** Rows of 2.5 kB that don't fit into the buffers between the service and a client. */
const LONG = 8_000;

/** A long report of card transactions: their rows are written as they are, without the ledger. */
async function writeTransactions(stack: TestStack, of: TestPartner): Promise<void> {
  const cardId = (await createCard(of, { amount: 50_000 })).json.id;
  const from = new Date(Date.now() - HOUR_MS / 2);
  await asOwner(
    stack,
    `INSERT INTO card_transaction (id, partner_id, mode, card_id, network_transaction_id, type,
       amount_cents, fees, merchant_name, charged_to, card_balance_after_cents, created_at)
     SELECT substr($1, 1, 14) || lpad(n::text, 16, '0'), $2, 'test', $3, gen_random_uuid(), 'purchase',
       n, '[]', repeat('A merchant with a long name ', 90), 'card', 0, $4 FROM generate_series(1, $5::integer) n`,
    [lowestId('txn', from), of.id, cardId, from, LONG],
  );
}

interface Download {
  response: IncomingMessage;
  /** Reads it to its end; rejects if the end is missing. */
  rest(): Promise<string>;
}

/** A request whose body nobody reads yet. */
async function downloadOf(
  stack: TestStack,
  name: string,
  of: TestPartner,
  method = 'GET',
): Promise<Download> {
  const { host, port } = stack.config;
  const path = `/v1/reports/${name}?${aroundNow()}`;
  const headers = { authorization: `Bearer ${of.keys.test}` };
  const outgoing = httpRequest({ host, port, method, path, headers }).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return { response, rest: () => textOf(response) };
}

/** What reports hold in the database: connections in a transaction, and slots of a partner. */
async function heldBy(stack: TestStack, of: TestPartner): Promise<{ connections: number; slots: number }> {
  const [row] = await asOwner<{ connections: number; slots: number }>(
    stack,
    `SELECT (SELECT count(*)::integer FROM pg_stat_activity WHERE application_name = 'card-issuing-reports'
         AND datname = current_database() AND state <> 'idle') AS connections,
       (SELECT count(*)::integer FROM report_transfer WHERE partner_id = $1) AS slots`,
    [of.id],
  );
  return row ?? { connections: -1, slots: -1 };
}

async function isNothingHeld(stack: TestStack, of: TestPartner): Promise<boolean> {
  const { connections, slots } = await heldBy(stack, of);
  return connections === 0 && slots === 0;
}

describe('the transfer of a report', () => {
  let stack: TestStack;
  let partner: TestPartner;
  /** With {@link LONG} card transactions. */
  let busy: TestPartner;
  before(async () => {
    stack = await sharedStack('api');
    partner = await stack.createPartner();
    busy = await fundedPartner(stack);
    await writeTransactions(stack, busy);
  });

  const deposits = (of: TestPartner, options: CallOptions = {}) =>
    of.call('GET', `/reports/deposits?${aroundNow()}`, options);

  const download = (name: string) => downloadOf(stack, name, busy);
  const nothingHeld = () => isNothingHeld(stack, busy);

  it('answers HEAD with the headers of GET, and holds nothing for it', async () => {
    const { response } = await downloadOf(stack, 'deposits', partner, 'HEAD');
    assert.equal(response.statusCode, 200);
    assert.equal(response.headers['content-type'], 'text/csv; charset=utf-8');
    assert.ok(await isNothingHeld(stack, partner));
  });

  it('shows one snapshot, whatever is written while it is read', async () => {
    const { response, rest } = await download('card_transactions');
    assert.equal(response.statusCode, 200);
    await asOwner(
      stack,
      'UPDATE card_transaction SET amount_cents = amount_cents + 1000000 WHERE partner_id = $1 AND amount_cents > $2',
      [busy.id, LONG - 100],
    );
    assert.equal((await heldBy(stack, busy)).connections, 1);
    const [header = [], ...rows] = rowsOf(await rest());
    assert.deepEqual(
      rows.map((row) => Number(row[header.indexOf('amount')])),
      Array.from({ length: LONG }, (_, index) => index + 1),
    );
    await until('nothing is held', nothingHeld);
  });

  it('sends a third report of an account and mode at a time back with 429 and Retry-After, but no other account', async () => {
    const first = await download('card_transactions');
    const second = await download('card_transactions');
    const refused = await deposits(busy);
    expectError(refused, 'rate_limited');
    assert.ok(Number(refused.headers.get('retry-after')) >= 1);
    assert.equal((await deposits(busy, { mode: 'live' })).status, 200);
    assert.equal((await deposits(partner)).status, 200);
    await Promise.all([first.rest(), second.rest()]);
    await until('the slots are free', nothingHeld);
  });

  it('counts two at a time across processes, and no more for one that died, also if the clock was set back since', async () => {
    for (const slot of [1, 2]) {
      await query(
        stack.orm.em.fork(),
        `INSERT INTO report_transfer (partner_id, mode, slot, id, leased_until)
         VALUES ($1, 'test', $2, gen_random_uuid(), now() + interval '50 seconds')`,
        [partner.id, slot],
      );
    }
    expectError(await deposits(partner), 'rate_limited');
    for (const leasedUntil of ['now()', "now() + interval '1 hour'"]) {
      await asOwner(
        stack,
        `UPDATE report_transfer SET leased_until = ${leasedUntil} WHERE partner_id = $1 AND slot = 2`,
        [partner.id],
      );
      assert.equal((await deposits(partner)).status, 200, leasedUntil);
    }
  });

  it('ends a transfer whose client leaves, and holds nothing for it any more', async () => {
    const { response } = await download('card_transactions');
    response.destroy();
    await until('nothing is held', nothingHeld);
  });

  it('cuts the transfer if the database fails after its first part', async () => {
    const { rest } = await download('card_transactions');
    await asOwner(
      stack,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'card-issuing-reports' AND datname = current_database()`,
      [],
    );
    await assert.rejects(rest(), { code: 'ECONNRESET' });
    await until('nothing is held', nothingHeld);
    assert.equal((await deposits(partner)).status, 200);
  });

  for (const { name, end } of [
    { name: 'its key is revoked', end: (keyId: string) => revokeApiKey(stack.operator, keyId) },
    {
      name: 'its key expires',
      end: (keyId: string) => asOwner(stack, 'UPDATE api_key SET expires_at = now() WHERE id = $1', [keyId]),
    },
    { name: 'its account is suspended', end: () => suspendPartner(stack.operator, busy.id, 'a stolen key') },
  ]) {
    it(`cuts the transfer once ${name}`, async () => {
      const { keyId, ...asked } = await withNewKey(stack, busy);
      const { response, rest } = await downloadOf(stack, 'card_transactions', asked);
      await end(keyId);
      await until('nothing is held', nothingHeld);
      await assert.rejects(rest(), { code: 'ECONNRESET' });
      const line = stack.logLines.findLast((one) => one.includes(String(response.headers['request-id'])));
      assert.equal(JSON.parse(line ?? '{}').cutBy, 'key');
    });
  }
});

describe('a report that nobody reads', () => {
  it('is cut, without the end of the body, and nothing is held for it any more', async () => {
    const reportLimits = { stallMs: 1_500, maxMs: 60_000 };
    await using stack = await startTestStack({ reportLimits }, { worker: false });
    const partner = await fundedPartner(stack);
    await writeTransactions(stack, partner);
    const { response, rest } = await downloadOf(stack, 'card_transactions', partner);
    await until('it is cut', () => isNothingHeld(stack, partner));
    await assert.rejects(rest(), { code: 'ECONNRESET' });
    assert.equal(response.complete, false);
    const line = stack.logLines.findLast((one) => one.includes(String(response.headers['request-id'])));
    assert.equal(JSON.parse(line ?? '{}').cutBy, 'stall');
  });
});

describe('reports that are read slowly by several accounts', () => {
  it('give way to another account, the slowest first, and only as many as have to', async () => {
    const stack = await sharedStack('api');
    const slow = await Promise.all(Array.from({ length: 4 }, () => fundedPartner(stack)));
    for (const partner of slow) await writeTransactions(stack, partner);
    const downloads: Download[] = [];
    for (const partner of slow) {
      downloads.push(await downloadOf(stack, 'card_transactions', partner));
      downloads.push(await downloadOf(stack, 'card_transactions', partner));
    }
    const other = await stack.createPartner();
    const answer = await other.call('GET', `/reports/card_transactions?${aroundNow()}`);
    assert.equal(answer.status, 200);
    const cut = stack.logLines.filter(
      (line) => line.includes('"cutBy":"others"') && slow.some(({ id }) => line.includes(id)),
    );
    assert.equal(cut.length, 1);
    const [held] = await asOwner<{ slots: number }>(
      stack,
      'SELECT count(*)::integer AS slots FROM report_transfer WHERE partner_id = ANY ($1)',
      [slow.map(({ id }) => id)],
    );
    assert.equal(held?.slots, downloads.length - 1);
    for (const { response } of downloads) response.on('error', () => {}).destroy();
    await until('nothing is held', () => isNothingHeld(stack, other));
  });
});
