import assert from 'node:assert/strict';
import { newId } from '../../platform/crypto/new-id.ts';
import { ATTENTION_KINDS, type AttentionKind } from '../../platform/monitoring/attention-item.ts';
import { claimIdempotencyKey } from '../../requests/claim.ts';
import { changeStatus } from '../support/card-status.ts';
import { createCard, forgetNetworkCard } from '../support/cards.ts';
import { seedDeposit } from '../support/deposits/seed-deposits.ts';
import { readMetrics } from '../support/metrics.ts';
import { fundedPartner } from '../support/money.ts';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { transfer } from '../support/transfers.ts';
import { until } from '../support/until.ts';
import { setUrl, writeEvents } from '../support/webhooks/events.ts';

/** For how many minutes the oldest of each kind has waited; every kind has one item, and webhooks have two. */
const WAITED_MINUTES: Record<AttentionKind, number> = {
  card_issuance: 5,
  card_topup: 6,
  card_withdrawal: 4,
  card_status_change: 7,
  card_network_id: 8,
  request: 9,
  webhook: 31,
  // Its event is of just now.
  webhook_endpoint: 0,
  deposit: 12,
  deposit_confirmation: 17,
  deposit_payment: 13,
  deposit_workflow: 14,
  chain_scan: 15,
  default_partition: 16,
  // Nobody knows since when.
  server_log: 0,
  network_transaction: 17,
  network_transactions_full: 17,
  network_event: 19,
  true_up: 61,
  network_contradiction: 17,
  network_difference: 19,
  network_setup: 20,
  // Over two days.
  network_reconciliation: 3_240,
  adjustment: 18,
};

const PAYMENT = { valueMicroUsdt: 24_000_000n, blockNumber: 100, blockTime: new Date() };

describe('the metrics of what waits for a person', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 10_000 }, { hosted: false });
    partner = await fundedPartner(stack);
  });
  after(() => stack.stop());

  const change = (table: string, id: string, changes: string) =>
    asOwner(stack, `UPDATE ${table} SET ${changes} WHERE ${table === 'delivery' ? 'event_id' : 'id'} = $1`, [
      id,
    ]);
  const minutesAgo = (kind: AttentionKind, more = '') =>
    `now() ${more} - interval '${WAITED_MINUTES[kind]} minutes'`;

  async function liveCard(amount: number, status: number): Promise<string> {
    const { json, ...answer } = await createCard(partner, { amount }, { mode: 'live' });
    assert.equal(answer.status, status, answer.text);
    return json.id;
  }

  /** The samples of one gauge, by kind. */
  async function read(name: string): Promise<Record<string, number>> {
    const text = await readMetrics(stack);
    const samples = [...text.matchAll(/^(\w+)\{kind="(\w+)"\} (\S+)$/gm)].filter(([, of]) => of === name);
    return Object.fromEntries(samples.map(([, , kind = '', value]) => [kind, Number(value)]));
  }

  it('are 0 for every kind if nothing does', async () => {
    const nothing = Object.fromEntries(ATTENTION_KINDS.map((kind) => [kind, 0]));
    assert.deepEqual(
      await until('it is measured', async () => nonEmpty(await read('attention_items'))),
      nothing,
    );
    assert.deepEqual(await read('attention_longest_wait_seconds'), nothing);
  });

  it('count the items of each kind, and say how long the oldest has waited', async () => {
    // A worker does what can be done, and then is gone.
    const [used, other, pending] = [
      await liveCard(1_000, 201),
      await liveCard(1_000, 201),
      await liveCard(1_047, 202),
    ];
    const topUp = await transfer('topup', { partner, mode: 'live', cardId: used }, 1_047);
    assert.equal(topUp.status, 202, topUp.text);
    const withdrawal = await transfer('withdrawal', { partner, mode: 'live', cardId: used }, 147);
    assert.equal(withdrawal.status, 202, withdrawal.text);
    await until('all were asked for', async () => {
      const rows = await asOwner<{ id: string }>(
        stack,
        'SELECT id FROM card WHERE id = $1 UNION ALL SELECT id FROM card_transfer WHERE id IN ($2, $3)',
        [pending, topUp.json.id, withdrawal.json.id],
      );
      return rows.length === 3;
    });
    await stack.stopWorker();

    await change('card', pending, `created_at = ${minutesAgo('card_issuance', "- interval '24 hours'")}`);
    await change('topup', topUp.json.id, `created_at = ${minutesAgo('card_topup', "- interval '24 hours'")}`);
    await change(
      'withdrawal',
      withdrawal.json.id,
      `created_at = ${minutesAgo('card_withdrawal', "- interval '24 hours'")}`,
    );
    await forgetNetworkCard(stack, other);
    await change('card', other, `created_at = ${minutesAgo('card_network_id')}`);
    await changeStatus(partner, used, 'freeze', { mode: 'live' });
    // A claim whose API process died before it started anything.
    await claimIdempotencyKey(
      { orm: stack.orm, ring: stack.operator.ring },
      {
        ...{ partnerId: partner.id, mode: 'live', key: null, operation: 'create_card', cardId: null },
        ...{ claimId: newId('claim'), resourceId: newId('card'), requestId: newId('req') },
        ...{ apiKeyId: null, clientAddress: null },
        ...{ fingerprint: Buffer.alloc(32), sealedRequest: null, leaseMs: 0 },
      },
    );
    await asOwner(
      stack,
      `INSERT INTO late_answer (id, kind, said, contradicts_since, retry_after)
       VALUES ('card_1', 'card', 'yes', ${minutesAgo('network_contradiction')}, 'infinity')`,
    );
    for (const [kind, operation] of [
      ['card_status_change', 'freeze_card'],
      ['request', 'create_card'],
    ] as const) {
      const aged = await asOwner(
        stack,
        `UPDATE idempotency_claim SET created_at = ${minutesAgo(kind, "- interval '10 minutes'")}
         WHERE id = (SELECT max(id) FROM idempotency_claim WHERE operation = $1) RETURNING id`,
        [operation],
      );
      assert.equal(aged.length, 1, kind);
    }

    await setUrl(stack, partner, 'http://127.0.0.1:9/', 'live');
    const [older = '', newer = '', parked = ''] = await writeEvents(stack, partner, 3, 'live');
    for (const [id, waited] of [
      [older, WAITED_MINUTES.webhook],
      [newer, 10],
    ] as const) {
      await change('delivery', id, "status = 'given_up'");
      await asOwner(
        stack,
        `INSERT INTO delivery_attempt (event_id, endpoint_id, number, started_at, duration_ms, delivered, error)
         SELECT event_id, endpoint_id, 1, now() - interval '${waited} minutes', 1, false, 'timeout' FROM delivery
         WHERE event_id = $1`,
        [id],
      );
    }
    await change('delivery', parked, "status = 'parked'");
    await asOwner(
      stack,
      `UPDATE webhook_endpoint SET status = 'disabled', disabled_reason = 'for a test' WHERE partner_id = $1`,
      [partner.id],
    );

    const inReview = { ...PAYMENT, status: 'in_review', reason: 'other_amount' } as const;
    const review = await seedDeposit(stack, partner.id, { status: 'needs_review', payments: [inReview] });
    await change('deposit', review, `told_version = version, review_since = ${minutesAgo('deposit')}`);
    const found = { ...PAYMENT, status: 'found' } as const;
    const paid = await seedDeposit(stack, partner.id, { status: 'confirming', payments: [found] });
    await change('deposit', paid, 'told_version = version');
    await asOwner(
      stack,
      `UPDATE deposit_payment SET found_at = ${minutesAgo('deposit_payment')} WHERE deposit_id = $1`,
      [paid],
    );
    await asOwner(
      stack,
      `INSERT INTO unconfirmed_payment (network, tx_hash, log_index, deposit_id, value_micro_usdt, partner_id, mode,
         block_number, block_hash, transaction_index, block_time, says, seen_at)
       VALUES ('private', '${'ab'.repeat(32)}', 0, $1, 24000000, $2, 'live', 100, '${'cd'.repeat(32)}', 0, now(), '[]',
         ${minutesAgo('deposit_confirmation')})`,
      [paid, partner.id],
    );
    const outdated = await seedDeposit(stack, partner.id, { status: 'expired' });
    await change(
      'deposit',
      outdated,
      `version = told_version + 1, changed_at = ${minutesAgo('deposit_workflow')}`,
    );
    const unscanned = await seedDeposit(stack, partner.id);
    await change('deposit', unscanned, `told_version = version, created_at = ${minutesAgo('chain_scan')}`);

    // As many as make the bound itself need attention.
    await asOwner(
      stack,
      `INSERT INTO network_message
         (id, network, kind, message_id, fingerprint, body, size_bytes, network_card_id, reason, created_at)
       SELECT 'nmsg_' || n, 'simulated', 'transaction', n::text, '', '', 1, 'net', 'card_unknown',
         ${minutesAgo('network_transaction')} FROM generate_series(1, 8000) n`,
    );

    await asOwner(
      stack,
      `INSERT INTO network_event (id, network, event_id, body, size_bytes, created_at)
       VALUES ('nevt_1', 'elsewhere', '1', '', 1, ${minutesAgo('network_event')})`,
    );

    await asOwner(
      stack,
      `INSERT INTO true_up (id, direction, transfer_id, operation_id, partner_id, mode, card_id, amount_cents, token, created_at)
       SELECT k.id, k.direction, gen_random_uuid(), k.operation_id, c.partner_id, c.mode, c.id, 5, k.id, k.created_at
       FROM (SELECT * FROM card WHERE mode = 'live' LIMIT 1) c, (VALUES
         ('tru_1', 'from_card', 'block/1', ${minutesAgo('true_up')})) k (id, direction, operation_id, created_at)`,
    );

    await asOwner(
      stack,
      `INSERT INTO adjustment_request (id, partner_id, mode, amount_cents, reason, requested_by, created_at)
       VALUES ($1, $2, 'live', 5000000, 'wire 7', 'ada', ${minutesAgo('adjustment')})`,
      [newId('adj'), partner.id],
    );

    for (const [kind, problem] of [
      ['network_difference', 'missing_here'],
      ['network_setup', 'set_up'],
    ] as const)
      await asOwner(
        stack,
        `INSERT INTO reconciliation_finding
           (id, network, problem, kind, object_id, issuer_id, detail, made_after, first_found_at)
         VALUES ($1, 'simulated', $2, 'card', '', 'net', 'it differs', now(), ${minutesAgo(kind)})`,
        [newId('rec'), problem],
      );
    await asOwner(
      stack,
      `UPDATE measurement SET result = '{"found": {}, "matched": 0, "booked": 0, "durationSeconds": 1, "completedAt": "2026-01-01T00:00:00Z"}', measured_at = ${minutesAgo('network_reconciliation')}
       WHERE name = 'reconciliation'`,
    );

    // As a process with a clock far ahead would write it.
    await asOwner(
      stack,
      `INSERT INTO audit_entry (id, at, actor, action, subject, detail)
       VALUES ('aud_7${'z'.repeat(25)}', ${minutesAgo('default_partition')}, 'test', 'test', 'test', '{}')`,
    );

    await asOwner(
      stack,
      `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET log_error_verbosity = ''default''', current_database()); END $$`,
    );

    const counts = { ...Object.fromEntries(ATTENTION_KINDS.map((kind) => [kind, 1])), webhook: 2 };
    assert.deepEqual(
      await until('it is measured', async () => nonEmpty(await read('attention_items'))),
      counts,
    );
    const waited = await read('attention_longest_wait_seconds');
    for (const kind of ATTENTION_KINDS) {
      const seconds = waited[kind] ?? -1;
      const expected = WAITED_MINUTES[kind] * 60;
      assert.ok(seconds >= expected && seconds < expected + 59, `${kind}: ${seconds} s`);
    }
    const { json } = await operateIn(environmentOf(stack.config))('attention', 'list');
    const listed = (json as { kind: string }[]).map(({ kind }) => kind).sort();
    assert.deepEqual(listed, [...ATTENTION_KINDS, 'webhook'].sort());
  });
});

/** Undefined while nobody has measured anything. */
const nonEmpty = <T extends object>(samples: T): T | undefined =>
  Object.keys(samples).length === 0 ? undefined : samples;
