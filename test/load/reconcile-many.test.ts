import assert from 'node:assert/strict';
import type { FakeLithic } from '../../dev/lithic/fake-lithic.ts';
import { makeCard } from '../../dev/lithic/objects.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { API_KEY, startLithicStack } from '../support/adapters/lithic.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { reconciler } from '../support/operator/reconcile.ts';
import { asOwner } from '../support/postgres.ts';
import type { TestStack } from '../support/stack.ts';

const COUNT = 10_200;

describe('operator network reconcile on many cards', () => {
  let fake: FakeLithic;
  let stack: TestStack;
  let stop: () => Promise<void>;
  let operator: ReturnType<typeof reconciler>;
  before(async () => {
    ({ fake, stack, stop } = await startLithicStack());
    operator = reconciler(stack, { LITHIC_API_KEY: API_KEY, LITHIC_BASE_URL: fake.url });
    const partner = await fundedPartner(stack, 10_000);
    const { json } = await createCard(partner, { amount: 1_000 }, { mode: 'live' });
    await asOwner(
      stack,
      `INSERT INTO card SELECT r.* FROM card c, unnest($2::text[]) n (id),
         jsonb_populate_record(c, jsonb_build_object('id', n.id, 'external_ref', n.id, 'network_card_id', 'of-' || n.id)) r
       WHERE c.id = $1`,
      [json.id, Array.from({ length: COUNT }, () => newId('card'))],
    );
  });
  after(() => stop());

  it('notes ten thousand differences, shows one line with their number, and lists them by pages', async () => {
    const found = await operator.reconcile();
    assert.equal(found.missing_at_issuer.length, 10_000);
    const lines = await operator.differences();
    assert.deepEqual(
      lines.map(({ id, reason }) => [id, reason.startsWith('10000 of the kind "card" are here and not at')]),
      [['missing_at_issuer', true]],
    );
    const first = await operator.operate('network', 'findings', '--limit', '6000');
    const rest = await operator.operate(
      'network',
      'findings',
      '--limit',
      '6000',
      '--before',
      first.at(-1).id,
    );
    assert.deepEqual([first.length, rest.length], [6_000, 4_000]);
    const ids = new Set([...first, ...rest].map(({ object_id: id }: { object_id: string }) => id));
    assert.equal(ids.size, 10_000);
    // The same again: none is found twice.
    await operator.reconcile();
    assert.match((await operator.differences())[0]?.reason ?? '', /^10000 of/);
  });

  it('is right again once both agree, and asks for few pages', async () => {
    const cards = await asOwner<{ id: string; network_card_id: string; created_at: Date }>(
      stack,
      `SELECT id, network_card_id, created_at FROM card WHERE network_card_id LIKE 'of-%' ORDER BY id`,
    );
    const now = Date.now();
    for (const [index, { id, network_card_id: token }] of cards.entries()) {
      // Most of them in one second, as after a batch, and the others over half an hour.
      const ageMs = index < 8_000 ? 1_200_000 : 1_100_000 - index * 100;
      fake.program.cards.set(token, { ...makeCard({ memo: id }, new Date(now - ageMs)), token });
    }
    fake.calls.length = 0;
    assert.deepEqual(await operator.reconcile('3h'), {
      matched: COUNT + 1,
      missing_here: [],
      missing_at_issuer: [],
      different: [],
    });
    const pages = fake.calls.filter(({ call }) => call === 'GET /v1/cards').length;
    assert.ok(pages < 4 * (COUNT / 100), `${pages} pages`);
    assert.deepEqual(await operator.differences(), []);
    assert.deepEqual(await asOwner(stack, 'SELECT FROM reconciliation_seen LIMIT 1'), []);
  });
});
