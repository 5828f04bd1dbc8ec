import assert from 'node:assert/strict';
import { column } from '../support/column.ts';
import { assertAudited } from '../support/operator/audited.ts';
import { lastAudit, type Operate, operateIn, operatorEnvironment } from '../support/operator/operate.ts';

describe('operator partner', () => {
  let operate: Operate;

  before(async () => {
    operate = operateIn(await operatorEnvironment());
  });

  it('prints the id and the name of a new partner, and records it', async () => {
    const { code, json } = await operate('partner', 'create', '--name', 'Acme Ltd', '--secure-details');
    assert.equal(code, 0);
    assert.match(json.id, /^prt_[0-9a-z]{26}$/);
    assert.deepEqual(json, { id: json.id, name: 'Acme Ltd' });
    await assertAudited(operate, 'partner.create', json.id, { name: 'Acme Ltd', secureDetailsEnabled: true });
  });

  it('shows fees and limits, at first the platform’s', async () => {
    const id = await createPartner('Shown');
    const { code, json } = await operate('partner', 'show', id);
    assert.equal(code, 0);
    assert.deepEqual(json, {
      id,
      object: 'partner',
      name: 'Shown',
      secure_details: false,
      suspended_at: null,
      suspension_reason: null,
      test_clock: null,
      fees: {
        card_activation: 100,
        card_funding_bps: 200,
        card_funding_min: 50,
        transaction_flat: 10,
        transaction_bps: 50,
        decline_flat: 25,
        negotiated: false,
      },
      limits: {
        min_card: 100,
        max_card: 1_000_000,
        max_open_cards: 10_000,
        max_issued_per_day: 100_000_000,
        negotiated: false,
      },
      spending_controls: null,
      created: json.created,
    });
    assert.equal(new Date(json.created).toISOString(), json.created);
  });

  it('shows, replaces and removes the spending controls of an account, and records each change', async () => {
    const id = await createPartner('Controlled');
    const stored = {
      allowed_categories: null,
      blocked_categories: ['7995'],
      allowed_merchant_countries: null,
      blocked_merchant_countries: null,
      spending_limits: [{ amount: 500, interval: 'daily', categories: null }],
    };
    const asked = { blocked_categories: ['7995'], spending_limits: [{ amount: 500, interval: 'daily' }] };
    const shown = await operate('partner', 'controls', id);
    assert.deepEqual(shown.json, { partner_id: id, spending_controls: null });
    const set = await operate('partner', 'controls', id, '--set', JSON.stringify(asked));
    assert.deepEqual(set.json, { partner_id: id, spending_controls: stored }, set.err);
    assert.deepEqual((await operate('partner', 'show', id)).json.spending_controls, stored);
    await assertAudited(operate, 'partner.controls', id, { before: null, after: stored });
    const cleared = await operate('partner', 'controls', id, '--clear');
    assert.equal(cleared.json.spending_controls, null);
    await assertAudited(operate, 'partner.controls', id, { before: stored, after: null });
    const nowhere = 'prt_01k0000000000000000000000a';
    assert.equal((await operate('partner', 'controls', nowhere, '--clear')).code, 1);
  });

  it('lists every account, newest first', async () => {
    const first = await createPartner('One');
    const second = await createPartner('Two');
    const { json } = await operate('partner', 'list');
    assert.deepEqual(column(json.slice(0, 2), 'id'), [second, first]);
  });

  it('changes only what is given with update', async () => {
    const id = await createPartner('Before');
    const on = await operate('partner', 'update', id, '--secure-details', 'on');
    assert.deepEqual([on.json.name, on.json.secure_details], ['Before', true]);
    const renamed = await operate('partner', 'update', id, '--name', 'After');
    assert.deepEqual([renamed.json.name, renamed.json.secure_details], ['After', true]);
    const [before, after] = ['Before', 'After'].map((name) => ({ name, secureDetailsEnabled: true }));
    await assertAudited(operate, 'partner.update', id, { before, after });
  });

  it('changes only what is given with fees', async () => {
    const id = await createPartner('Negotiator');
    const first = await operate(
      ...['partner', 'fees', id, '--card-activation', '0', '--card-funding-bps', '10000'],
    );
    assert.equal(first.code, 0);
    assert.deepEqual(first.json, {
      card_activation: 0,
      card_funding_bps: 10_000,
      card_funding_min: 50,
      transaction_flat: 10,
      transaction_bps: 50,
      decline_flat: 25,
      negotiated: true,
    });
    const second = await operate(
      ...['partner', 'fees', id, '--card-funding-min', '7', '--transaction-flat', '8'],
      ...['--transaction-bps', '9', '--decline-flat', '11'],
    );
    assert.deepEqual(second.json, {
      ...first.json,
      ...{ card_funding_min: 7, transaction_flat: 8, transaction_bps: 9, decline_flat: 11 },
    });
    const shown = await operate('partner', 'fees', id);
    assert.deepEqual(shown.json, second.json);
    const { json: entries } = await operate('audit', 'list', '--subject', id);
    assert.deepEqual(column(entries.slice(0, 2), 'action'), ['partner.fees', 'partner.fees']);
    assert.equal(entries[0].detail.before.cardActivationCents, 0);
    assert.equal(entries[0].detail.after.declineFlatCents, 11);
  });

  it('changes only what is given with limits, and refuses a smallest card above the largest', async () => {
    const id = await createPartner('Limited');
    const { json } = await operate(
      ...['partner', 'limits', id, '--min-card', '500', '--max-card', '600'],
      ...['--max-open-cards', '0', '--max-issued-per-day', '9007199254740991'],
    );
    const negotiated = {
      min_card: 500,
      max_card: 600,
      max_open_cards: 0,
      max_issued_per_day: Number.MAX_SAFE_INTEGER,
      negotiated: true,
    };
    assert.deepEqual(json, negotiated);
    assert.equal(((await lastAudit(operate)) as { action: string }).action, 'partner.limits');
    const refused = await operate('partner', 'limits', id, '--max-card', '499');
    assert.equal(refused.code, 1);
    assert.match(refused.err, /--min-card and --max-card together/);
    assert.deepEqual((await operate('partner', 'limits', id)).json, negotiated);
  });

  async function createPartner(name: string): Promise<string> {
    return (await operate('partner', 'create', '--name', name)).json.id;
  }
});
