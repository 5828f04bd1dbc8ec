import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Browser } from 'playwright-core';
import { unrestrictedPartner } from '../../support/api/accounts.ts';
import { launchBrowser } from '../../support/browser.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean } from '../../support/money.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { startReceiver } from '../../support/webhooks/receiver.ts';
import { openTab, startWorkbenchStack, type Tab } from '../../support/workbench.ts';

describe('the workbench', () => {
  let browser: Browser;
  let stack: TestStack;
  let partner: TestPartner;
  let tab: Tab;
  before(async function () {
    const launched = await launchBrowser();
    if (launched === undefined) return this.skip();
    browser = launched;
    stack = await startWorkbenchStack();
  });
  beforeEach(async () => {
    partner = await unrestrictedPartner(stack);
    tab = await openTab(browser, partner);
  });
  afterEach(async () => {
    assert.deepEqual(tab.complaints, []);
    await tab.context.close();
  });
  after(async () => {
    await assertLedgerClean(stack);
    await browser?.close();
    await stack?.stop();
  });

  const get = async (path: string) => (await partner.call('GET', path)).json;
  const issue = async (body: object = {}): Promise<string> =>
    (await createCard(partner, { amount: 50_000, external_ref: randomUUID(), ...body })).json.id;
  const authorize = async (cardId: string, merchant = 'Café'): Promise<string> => {
    const { json } = await partner.call('POST', `/test/cards/${cardId}/authorizations`, {
      body: { amount: 100, merchant_name: merchant },
    });
    return json.id;
  };

  it('says what to do first, adds test money, and follows', async () => {
    const fresh = await stack.createPartner('Fresh');
    const { context, says, fill, submit, page, complaints } = await openTab(browser, fresh, {
      scopes: ['cards:read', 'cards:write', 'balance:read', 'events:read', 'test:write'],
    });
    await says('Add test money, then issue your first card');
    await page.getByRole('button', { name: 'Add test money' }).first().click();
    await fill('Amount in dollars', '250.50');
    await submit('Add');
    await says('$250.50');
    await says('Your test balance has $250.50 available.');
    assert.equal((await fresh.call('GET', '/balance')).json.total, 25_050);
    assert.deepEqual(complaints, []);
    await context.close();
  });

  it('says at its field what the API finds wrong, and issues nothing', async () => {
    const { visit, page, fill, says } = tab;
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
    const { page, visit, press, fill, submit } = tab;
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
    const { page, visit, press, fill, submit } = tab;
    await visit(`test/cards/${cardId}`);
    await press('Top up');
    await fill('Amount in dollars', '9900');
    await page.getByRole('dialog').getByRole('button', { name: 'Top up' }).click();
    await page.getByRole('dialog').getByText('insufficient_funds').waitFor();
    await partner.call('POST', '/test/credit', { body: { amount: 1_000_000 }, idempotencyKey: 'more' });
    await submit('Top up');
    assert.equal((await get(`/cards/${cardId}/topups`)).data[0].amount, 990_000);
  });

  it('does at once, or not at all, what is asked for while the browser is offline', async () => {
    const cardId = await issue();
    const { page, context, visit, press, fill, submit, says } = tab;
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
    const { page, visit, press, fill } = tab;
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
    const { page, visit, press, fill, submit, says } = tab;
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
    const { page, visit, press, fill, submit, says } = tab;
    await visit(`test/cards/${cardId}`);
    await page.getByRole('main').getByRole('button', { name: 'Edit', exact: true }).first().click();
    await fill('Label', 'After');
    const keys = page.getByRole('dialog').getByLabel('Key');
    const names = await Promise.all((await keys.all()).map((key) => key.inputValue()));
    await press(`Remove row ${names.indexOf('old') + 1}`);
    await page.getByLabel('Key').last().fill('cost_centre');
    await page.getByLabel('Value').last().fill('42');
    await partner.call('PATCH', `/cards/${cardId}`, {
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
    await partner.call('PATCH', `/cards/${cardId}`, {
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
    const { page, context, visit, press, sent } = tab;
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
    const { page, choose, press, fill, submit, says, visit } = tab;
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

  it('shows the balance, a statement, a report, and sets the alert', async () => {
    await issue();
    const { page, choose, press, fill, submit, says } = tab;
    await choose('Balance');
    await says('Card issue');
    await press('Set the alert');
    await fill('Alert below, in dollars', '100');
    await submit('Save');
    await says('$100.00');
    assert.equal((await get('/balance/alert')).threshold, 10_000);
    await page.route('**/balance/alert', (route) => route.abort());
    await page.reload();
    const figures = page.getByRole('region', { name: 'Now' });
    await figures.getByText('Available').waitFor();
    assert.match((await figures.textContent()) ?? '', /Alert below—$/);
    assert.ok(await page.getByRole('button', { name: 'Set the alert' }).isDisabled());
    await page.unroute('**/balance/alert');
    await page.reload();
    await figures.getByText('$100.00').waitFor();
    await press('Quote');
    await page.getByRole('dialog').getByText('Debited').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Statements' }).click();
    await says('All cards together');
    await page.getByRole('link', { name: 'Reports' }).click();
    const downloading = page.waitForEvent('download');
    await press('Download CSV');
    const file = await (await downloading).path();
    assert.match(await readFile(file, 'utf8'), /card_issue/);
  });

  it('shows the address of a deposit as a QR code until something arrives, and resolves what does not fit', async () => {
    const { page, choose, press, fill, submit, says } = tab;
    const make = async (payment: string) => {
      await choose('Deposits');
      await page.getByRole('button', { name: 'Make a test deposit' }).first().click();
      await fill('Amount in dollars', '100');
      await page.getByLabel('What arrives').selectOption(payment);
      await page.getByRole('dialog').getByRole('button', { name: 'Make', exact: true }).click();
    };
    await make('none');
    await page.getByRole('img', { name: /^QR code of the address test_/ }).waitFor();
    const drawn = await page.evaluate(`(() => {
      const canvas = document.querySelector('canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value, index) => index % 4 === 0 && value === 0);
    })()`);
    assert.ok(drawn);
    await make('short');
    await says('What arrived does not fit. One of us looks at it.');
    assert.equal(await page.getByRole('img', { name: /^QR code/ }).count(), 0);
    await press('Resolve');
    await submit('Resolve');
    await says('Your balance was credited.');
    assert.equal((await get('/funding/deposits')).data[0].credited_amount, 5_000);
  });

  it('adds an endpoint, shows its secret once, pings, changes, rotates, replays and deletes it', async () => {
    const receiver = await startReceiver();
    const { page, choose, press, fill, submit, says } = tab;
    await choose('Endpoints');
    await page.getByRole('button', { name: 'Add an endpoint' }).first().click();
    await fill('URL', receiver.url);
    await press('Add');
    const secret = page.getByRole('dialog', { name: 'The signing secret' });
    await secret.getByText(/^whsec_/).waitFor();
    await page.keyboard.press('Escape');
    await page.getByText(/whsec_/).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: receiver.url }).click();
    await press('Send a ping');
    await until('the ping has arrived', () =>
      receiver.received.some(({ body }) => JSON.parse(body).type === 'ping'),
    );
    await page.getByRole('link', { name: /^ping: succeeded/ }).waitFor();
    await press('Change');
    await fill('Description', 'Orders');
    await page.getByLabel('card.issued').check();
    const [{ id }] = (await get('/webhook-endpoints')).data;
    await partner.call('PATCH', `/webhook-endpoints/${id}`, { body: { standard_webhooks: true } });
    await says('Its headers are sent, too');
    await submit('Save');
    await says('Orders');
    assert.equal((await get(`/webhook-endpoints/${id}`)).standard_webhooks, true);
    await issue();
    await press('Rotate the secret');
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate', exact: true }).click();
    await secret.getByText(/^whsec_/).waitFor();
    await page.keyboard.press('Escape');
    await press('Replay');
    await fill('From', '2026-01-01T00:00');
    await page.getByLabel('Which').selectOption('all');
    await submit('Replay');
    await says(/of 1 events are sent/);
    await page.getByRole('region', { name: 'Replay' }).getByText('Completed').waitFor();
    await choose('Events');
    await page.getByRole('link', { name: 'card.issued' }).first().click();
    await says('Payload');
    await press('Resend');
    await submit('Resend');
    await says('The event is sent again.');
    await choose('Endpoints');
    await page.getByRole('link', { name: receiver.url }).click();
    await press('Delete');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await says('No endpoint yet');
    assert.deepEqual((await get('/webhook-endpoints')).data, []);
    await receiver.stop();
  });

  it('creates, rotates and revokes keys, and shows each once', async () => {
    const { page, choose, press, fill, submit, says } = tab;
    await choose('Keys');
    await press('Create a key');
    await fill('Name', 'CI');
    await page.getByRole('dialog').getByLabel('cards:write').uncheck();
    await press('Create');
    const made = page.getByRole('dialog', { name: 'The new key' });
    await made.getByText(/^sk_test_/).waitFor();
    const key = (await made.locator('code').textContent()) ?? '';
    await page.keyboard.press('Escape');
    const withKey = { ...partner, keys: { test: key, live: '' } };
    const { json } = await stack.partnerHere(withKey).call('GET', '/ping');
    assert.equal(json.partner_id, partner.id);
    await page.getByText(key).waitFor({ state: 'detached' });
    await press('Rotate CI');
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate', exact: true }).click();
    await made.getByText(/^sk_test_/).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Revoke CI' }).first().click();
    await submit('Revoke');
    await says('Revoked');
    const { data } = await get('/api-keys');
    assert.ok(data.some(({ name, status }: Record<string, string>) => name === 'CI' && status === 'revoked'));
  });

  it("shows a refused request by its error, a request's operation, and the card that it and its events are about", async () => {
    const cardId = await issue();
    await partner.call('POST', `/cards/${cardId}/topups`, { body: { amount: -1 }, idempotencyKey: 'wrong' });
    const { page, choose, says } = tab;
    await choose('Requests');
    await page.getByLabel('Status').selectOption('400');
    const row = page.getByRole('link', { name: /topups$/ });
    await until('the refused request is in the log', async () => {
      if ((await row.count()) > 0) return true;
      await page.reload();
      return false;
    });
    await row.first().click();
    await says('validation_failed');
    await says('amount');
    await choose('Requests');
    await page.getByRole('link', { name: 'Operations' }).click();
    await page.getByRole('link', { name: 'Create card' }).first().click();
    await says('Completed.');
    const opens = async () => {
      await page.getByRole('link', { name: cardId }).first().click();
      await page.getByRole('heading', { name: /^Card ••••/ }).waitFor();
    };
    await opens();
    await choose('Events');
    await opens();
  });

  it('advances the test clock, and says everywhere how far it is ahead', async () => {
    const id = await authorize(await issue());
    const { page, choose, press, says } = tab;
    await choose('Test clock');
    await says('An authorization of Café expires');
    await press('30 days');
    await says('30 days ahead');
    const isExpired = async () => (await get(`/authorizations/${id}`)).status === 'expired';
    await until('the authorization has expired', isExpired);
    await says('Nothing is scheduled.');
    await choose('Home');
    await says('30 days ahead');
    assert.equal((await get('/test/clock')).offset_seconds, 30 * 86_400);
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
  });

  it('says what is due next, however much is newer', async () => {
    const cardId = await issue();
    await authorize(cardId, 'First');
    for (let newer = 0; newer < 100; newer++) await authorize(cardId);
    await tab.choose('Test clock');
    await tab.says('An authorization of First expires');
  });
});
