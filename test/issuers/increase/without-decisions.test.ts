import assert from 'node:assert/strict';
import { increaseConfigOf } from '../../support/adapters/increase.ts';
import { startIncreaseStack } from '../../support/adapters/increase-stack.ts';
import { expectError } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { environmentOf, operateIn } from '../../support/operator/operate.ts';

const CONTROLS = { blocked_categories: ['7995'] };

describe('live mode on an Increase that approves without asking us', () => {
  let live: Awaited<ReturnType<typeof startIncreaseStack>>;
  before(async () => {
    live = await startIncreaseStack({}, {}, (fake) => ({
      ...increaseConfigOf(fake),
      asksForDecisions: false,
    }));
  });
  after(async () => {
    await assertLedgerClean(live.stack);
    await live.stop();
  });

  it('refuses spending controls on live cards, which nothing would keep to, and takes them on test cards', async () => {
    const partner = await fundedPartner(live.stack);
    const asked = { amount: 1_000, spending_controls: CONTROLS };
    const refused = await createCard(partner, asked, { mode: 'live' });
    expectError(refused, 'validation_failed', ['spending_controls']);
    assert.equal((await createCard(partner, asked)).status, 201);

    const card = await createCard(partner, { amount: 1_000 }, { mode: 'live' });
    assert.equal(card.status, 201, card.text);
    const change = (body: object) => partner.call('PATCH', `/cards/${card.json.id}`, { mode: 'live', body });
    expectError(await change({ spending_controls: CONTROLS }), 'validation_failed', ['spending_controls']);
    assert.equal((await change({ spending_controls: null, metadata: { order: '1' } })).status, 200);
  });

  it("refuses an operator's controls of an account, whose live cards would not keep to them, and lets remove them", async () => {
    const { id } = await fundedPartner(live.stack);
    const environment = environmentOf(live.stack.config);
    const operate = operateIn({ ...environment, INCREASE_REAL_TIME_DECISIONS: 'false' });
    const { code, err } = await operate('partner', 'controls', id, '--set', JSON.stringify(CONTROLS));
    assert.equal(code, 1);
    assert.match(err, /INCREASE_REAL_TIME_DECISIONS=false/);
    assert.equal((await operate('partner', 'controls', id)).json.spending_controls, null);
    assert.equal((await operate('partner', 'controls', id, '--clear')).code, 0);
    const asking = operateIn(environment);
    assert.equal((await asking('partner', 'controls', id, '--set', JSON.stringify(CONTROLS))).code, 0);
  });
});
