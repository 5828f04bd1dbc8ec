import assert from 'node:assert/strict';
import { until } from '../../support/until.ts';
import { startJourneys } from '../../support/workbench-journeys.ts';

describe('the workbench, with cards', () => {
  const journey = startJourneys();
  const { get, issue } = journey;

  it('says at its field what the API finds wrong, and issues nothing', async () => {
    const { visit, page, fill, says } = journey.tab;
    await visit('test/cards#issue');
    await fill('Amount in dollars', 'ten');
    await page.getByRole('dialog').getByRole('button', { name: 'Issue' }).click();
    await says('Enter an amount in dollars, such as 25 or 12.50.');
    await fill('Amount in dollars', '10');
    await page.getByRole('dialog').getByRole('button', { name: 'Issue' }).click();
    await page.locator('input[name=external_ref][aria-invalid=true]').waitFor();
    await page.keyboard.press('Escape');
    assert.deepEqual((await get('/cards')).data, []);
  });

  it('does once what is sent again after its answer was lost', async () => {
    const cardId = await issue();
    const { page, visit, press, fill, submit } = journey.tab;
    await visit(`test/cards/${cardId}`);
    await press('Top up');
    await fill('Amount in dollars', '10');
    const keys: (string | null)[] = [];
    let lost = 0;
    await page.route('**/topups', async (route) => {
      keys.push(await route.request().headerValue('idempotency-key'));
      // The API has done it, and the page never hears of it.
      await route.fetch();
      if (lost++ < 3) await route.abort();
      else await route.continue();
    });
    await page.getByRole('dialog').getByRole('button', { name: 'Top up' }).click();
    await page.getByRole('dialog').getByText('Press the button again').waitFor();
    await submit('Top up');
    assert.equal(new Set(keys).size, 1);
    assert.equal((await get(`/cards/${cardId}/topups`)).data.length, 1);
  });

  it('does what was refused once its cause is gone', async () => {
    const cardId = await issue();
    const { page, visit, press, fill, submit } = journey.tab;
    await visit(`test/cards/${cardId}`);
    await press('Top up');
    await fill('Amount in dollars', '9900');
    await page.getByRole('dialog').getByRole('button', { name: 'Top up' }).click();
    await page.getByRole('dialog').getByText('insufficient_funds').waitFor();
    await journey.partner.call('POST', '/test/credit', {
      body: { amount: 1_000_000 },
      idempotencyKey: 'more',
    });
    await submit('Top up');
    assert.equal((await get(`/cards/${cardId}/topups`)).data[0].amount, 990_000);
  });

  it('does at once, or not at all, what is asked for while the browser is offline', async () => {
    const cardId = await issue();
    const { page, context, visit, press, fill, submit, says } = journey.tab;
    await visit(`test/cards/${cardId}`);
    const dialog = page.getByRole('dialog');
    await press('Top up');
    await fill('Amount in dollars', '10');
    await context.setOffline(true);
    await dialog.getByRole('button', { name: 'Top up' }).click();
    await dialog.getByText('Press the button again').waitFor();
    await says('The API does not answer');
    await press('Cancel');
    await context.setOffline(false);
    await press('Top up');
    await fill('Amount in dollars', '10');
    await submit('Top up');
    assert.equal((await get(`/cards/${cardId}/topups`)).data.length, 1);
  });

  it('stays with what it does until that has an outcome', async () => {
    const cardId = await issue();
    const { page, visit, press, fill } = journey.tab;
    await visit(`test/cards/${cardId}`);
    const dialog = page.getByRole('dialog');
    const asked = Promise.withResolvers<void>();
    await page.route('**/topups', async (route) => {
      await asked.promise;
      await route.continue();
    });
    await press('Top up');
    await fill('Amount in dollars', '10');
    await page.keyboard.press('Enter');
    await dialog.getByRole('button', { name: 'Working…' }).waitFor();
    for (const _ of [1, 2, 3]) await page.keyboard.press('Escape');
    for (const name of ['Cancel', 'Close'])
      assert.equal(await dialog.getByRole('button', { name }).isDisabled(), true);
    asked.resolve();
    await dialog.waitFor({ state: 'detached' });
    assert.equal((await get(`/cards/${cardId}/topups`)).data.length, 1);
  });

  it('tops a card up, withdraws, freezes, unfreezes and blocks it, and shows it all in its timeline', async () => {
    const cardId = await issue();
    const { page, visit, press, fill, submit, says } = journey.tab;
    await visit(`test/cards/${cardId}`);
    const statusIs = (status: string) =>
      page.getByRole('region', { name: 'Money' }).getByText(status, { exact: true }).waitFor();
    await press('Top up');
    await fill('Amount in dollars', '10');
    await submit('Top up');
    await press('Withdraw');
    await fill('Amount in dollars', '5.25');
    await submit('Withdraw');
    await says('$504.75');
    await press('Freeze');
    await submit('Freeze');
    await statusIs('Frozen');
    await press('Unfreeze');
    await submit('Unfreeze');
    await statusIs('Active');
    await press('Block');
    await submit('Block');
    await statusIs('Blocked');
    for (const name of ['Top up', 'Block', 'Freeze'])
      assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0);
    const happened = page.getByRole('region', { name: 'What happened' }).getByRole('listitem');
    await until('everything is in the timeline', async () => (await happened.count()) === 6);
    const lines = (await happened.allTextContents()).join('\n');
    for (const what of ['Top-up', 'Withdrawal', 'frozen', 'unfrozen', 'blocked', 'issued'])
      assert.match(lines, new RegExp(what));
    assert.equal((await get(`/cards/${cardId}`)).status, 'blocked');
  });

  it("edits a card's label, metadata, controls and limits, and nothing that others change meanwhile", async () => {
    const cardId = await issue({ metadata: { team: 'ads', old: 'x' }, card_name: 'Before' });
    const { page, visit, press, fill, submit, says } = journey.tab;
    await visit(`test/cards/${cardId}`);
    await page.getByRole('main').getByRole('button', { name: 'Edit', exact: true }).first().click();
    await fill('Label', 'After');
    const keys = page.getByRole('dialog').getByLabel('Key');
    const names = await Promise.all((await keys.all()).map((key) => key.inputValue()));
    await press(`Remove row ${names.indexOf('old') + 1}`);
    await page.getByLabel('Key').last().fill('cost_centre');
    await page.getByLabel('Value').last().fill('42');
    await journey.partner.call('PATCH', `/cards/${cardId}`, {
      body: { email: 'ada@example.com', metadata: { team: 'video', brand: 'north' } },
    });
    await says('north');
    await submit('Save');
    await says('After');
    const region = page.getByRole('region', { name: 'Controls and limits' });
    await region.getByRole('button', { name: 'Edit' }).click();
    await fill('None of these merchant categories', '7995, 7801');
    await press('Add a limit');
    await fill('Dollars', '100');
    await page.getByLabel('Interval').selectOption('weekly');
    await journey.partner.call('PATCH', `/cards/${cardId}`, {
      body: { spending_controls: { blocked_merchant_countries: ['FR'] } },
    });
    await region.getByText('No countries').waitFor();
    await submit('Save');
    await region.getByText('$100.00 of $100.00 left').waitFor();
    const { card_name, email, metadata, spending_controls } = await get(`/cards/${cardId}`);
    assert.deepEqual([card_name, email], ['After', 'ada@example.com']);
    assert.deepEqual(metadata, { team: 'video', brand: 'north', cost_centre: '42' });
    assert.deepEqual(spending_controls.blocked_categories, ['7995', '7801']);
    assert.deepEqual(spending_controls.blocked_merchant_countries, ['FR']);
    assert.deepEqual(spending_controls.spending_limits, [
      { amount: 10_000, interval: 'weekly', categories: null },
    ]);
    await region.getByRole('button', { name: 'Edit' }).click();
    await press('Remove limit 1');
    await submit('Save');
    await region.getByText('$100.00 of $100.00 left').waitFor({ state: 'detached' });
    const last = await get(`/cards/${cardId}`);
    assert.equal(last.spending_controls.spending_limits, null);
  });

  it("opens a card's number in a page of its own, and never has it itself", async () => {
    const cardId = await issue();
    const { page, context, visit, press, sent } = journey.tab;
    await visit(`test/cards/${cardId}`);
    await press('Reveal');
    await press('Make a link');
    const opened = context.waitForEvent('page');
    await page.getByRole('link', { name: /Show the card/ }).click();
    const reveal = await opened;
    await reveal.getByRole('button', { name: 'Show card details' }).click();
    await reveal.getByText(/Shown for a minute/).waitFor();
    const number = (await reveal.locator('#number').textContent())?.replaceAll(' ', '') ?? '';
    assert.match(number, /^\d{16}$/);
    assert.ok(!(await page.content()).includes(number));
    assert.deepEqual(
      sent.filter((request) => request.includes('secure-details')),
      [],
    );
  });

  it('is the merchant of a test card: authorizes, increments, captures, reverses, expires, refunds, declines', async () => {
    const cardId = await issue();
    const { page, choose, press, fill, submit, says, visit } = journey.tab;
    await choose('Payments');
    await press('Simulate a merchant');
    await fill('Amount in dollars', '12');
    await fill('Merchant', 'Café Central');
    await submit('Simulate');
    await page.getByRole('link', { name: 'Café Central' }).click();
    const step = async (name: string, amount?: string) => {
      await page.getByRole('main').getByRole('button', { name, exact: true }).click();
      if (amount !== undefined) await fill('Amount in dollars', amount);
      await submit(name);
    };
    await step('Increment', '3');
    await says('$15.00');
    await page.getByRole('main').getByRole('button', { name: 'Capture', exact: true }).click();
    await fill('Amount in dollars', '5');
    await page.getByLabel('Release what is left').uncheck();
    await submit('Capture');
    await step('Reverse', '2');
    await until('8.00 are held', async () => (await get(`/cards/${cardId}`)).available_balance === 48_700);
    await step('Expire');
    await until('nothing is held', async () => (await get(`/cards/${cardId}`)).available_balance === 49_500);
    await visit(`test/cards/${cardId}`);
    for (const kind of ['refund', 'decline', 'purchase', 'force_capture']) {
      await press('Simulate');
      await page.getByLabel('What happens').selectOption(kind);
      await submit('Simulate');
    }
    const { data } = await get(`/cards/${cardId}/transactions`);
    assert.deepEqual(
      data.map(({ type }: { type: string }) => type),
      ['purchase', 'purchase', 'decline', 'refund', 'purchase'],
    );
    await visit('test/payments/transactions');
    await page.getByLabel('Type').selectOption('refund');
    const rows = page.getByRole('table').locator('tbody tr');
    await until('one refund is there', async () => (await rows.count()) === 1);
    await page.reload();
    await until('the filter stands in the address', async () => (await rows.count()) === 1);
    await page.goBack();
  });
});
