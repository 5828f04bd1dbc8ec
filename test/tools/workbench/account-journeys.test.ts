import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { until } from '../../support/until.ts';
import { startReceiver } from '../../support/webhooks/receiver.ts';
import { openTab } from '../../support/workbench.ts';
import { startJourneys } from '../../support/workbench-journeys.ts';

describe('the workbench, with an account', () => {
  const journey = startJourneys();
  const { get, issue } = journey;
  const authorize = async (cardId: string, merchant = 'Café'): Promise<string> => {
    const { json } = await journey.partner.call('POST', `/test/cards/${cardId}/authorizations`, {
      body: { amount: 100, merchant_name: merchant },
    });
    return json.id;
  };

  it('says what to do first, adds test money, and follows', async () => {
    const fresh = await journey.stack.createPartner('Fresh');
    const { context, says, fill, submit, page, complaints } = await openTab(journey.browser, fresh, {
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

  it('shows the balance, a statement, a report, and sets the alert', async () => {
    await issue();
    const { page, choose, press, fill, submit, says } = journey.tab;
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
    const { page, choose, press, fill, submit, says } = journey.tab;
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
    const { page, choose, press, fill, submit, says } = journey.tab;
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
    await journey.partner.call('PATCH', `/webhook-endpoints/${id}`, { body: { standard_webhooks: true } });
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
    const { page, choose, press, fill, submit, says } = journey.tab;
    await choose('Keys');
    await press('Create a key');
    await fill('Name', 'CI');
    await page.getByRole('dialog').getByLabel('cards:write').uncheck();
    await press('Create');
    const made = page.getByRole('dialog', { name: 'The new key' });
    await made.getByText(/^sk_test_/).waitFor();
    const key = (await made.locator('code').textContent()) ?? '';
    await page.keyboard.press('Escape');
    const withKey = { ...journey.partner, keys: { test: key, live: '' } };
    const { json } = await journey.stack.partnerHere(withKey).call('GET', '/ping');
    assert.equal(json.partner_id, journey.partner.id);
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
    await journey.partner.call('POST', `/cards/${cardId}/topups`, {
      body: { amount: -1 },
      idempotencyKey: 'wrong',
    });
    const { page, choose, says } = journey.tab;
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
    const { page, choose, press, says } = journey.tab;
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
    await journey.tab.choose('Test clock');
    await journey.tab.says('An authorization of First expires');
  });
});
