import assert from 'node:assert/strict';
import { pino } from 'pino';
import { updatePartner } from '../../accounts/partners.ts';
import { type RunningApi, startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import { simulatedNetworkCredentials, simulatedNetworkSecrets } from '../../issuers/simulated/credentials.ts';
import { signBody } from '../../issuers/simulated/signature.ts';
import type { ApiPart } from '../../platform/config/api-parts.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('an API process that serves only some parts', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  let api: RunningApi | undefined;
  const logLines: string[] = [];

  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 10_000);
    await updatePartner(stack.operator, partner.id, { secureDetailsEnabled: true });
    cardId = (await createCard(partner, { amount: 1_000 })).json.id;
  });
  afterEach(async () => {
    await api?.stop();
    api = undefined;
  });

  const start = async (apiParts: ApiPart[], overrides = {}) => {
    logLines.length = 0;
    const config = { ...stack.config, port: await freePort(), apiParts, ...overrides };
    api = await startApi(config, pino({}, { write: (line: string) => logLines.push(line) }));
    return config;
  };
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(new URL(path, api?.url), {
      ...init,
      headers: { authorization: `Bearer ${partner.keys.test}`, ...init.headers },
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text };
  };
  const reveal = () => ask(`/v1/cards/${cardId}/secure-details`);
  const callBack = () => {
    const [secret] = simulatedNetworkSecrets(stack.operator.ring);
    const body = JSON.stringify({ token: newId('card'), type: 'card.issuance' });
    const signature = signBody(body, simulatedNetworkCredentials(secret).callbackSecret);
    return ask('/network/callbacks', { method: 'POST', body, headers: { 'x-network-signature': signature } });
  };
  const warned = () =>
    logLines
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => msg.startsWith('a request for a part of the API that this process does not serve'))
      .map(({ part }) => part);

  it('reveals cards and does nothing else, without Temporal', async () => {
    const nowhere = { connectionOptions: { address: `127.0.0.1:${await freePort()}` }, namespace: 'default' };
    await start(['reveal'], { temporal: nowhere });
    const { status, text } = await reveal();
    assert.equal(status, 200, text);
    assert.match(JSON.parse(text).pan, /^\d{16}$/);
    expectError(await ask('/v1/balance'), 'not_found');
    expectError(await ask('/v1/cards', { method: 'POST', body: '{}' }), 'not_found');
    expectError(await callBack(), 'not_found');
    for (const path of ['/docs', '/guide']) expectError(await ask(path), 'not_found');
    expectError(await ask(`/v1/cards/${cardId}/secure-details`, { method: 'POST' }), 'method_not_allowed');
    assert.deepEqual(warned(), ['partner', 'partner', 'network', 'partner', 'partner']);
    const { status: ready, text: readiness } = await ask('/readyz');
    assert.deepEqual([ready, JSON.parse(readiness).problems], [200, {}]);
    assert.doesNotMatch((await ask('/metrics')).text, /dependency="temporal"/);
  });

  it("serves partners without ever sending a card's number", async () => {
    await start(['partner']);
    assert.equal((await ask('/v1/balance')).status, 200);
    assert.equal((await ask('/openapi.json')).status, 200);
    expectError(await reveal(), 'not_found');
    expectError(await callBack(), 'not_found');
    assert.deepEqual(warned(), ['reveal', 'network']);
    expectError(await ask('/v1/no-such-route'), 'not_found');
    assert.equal(warned().length, 2, 'an unknown path belongs to no other process');
  });

  it("takes the card network's requests and nothing else", async () => {
    await start(['network']);
    assert.equal((await callBack()).status, 204);
    expectError(await reveal(), 'not_found');
    expectError(await ask('/v1/balance'), 'not_found');
    assert.deepEqual(warned(), ['reveal', 'partner']);
    assert.equal((await ask('/readyz')).status, 200);
  });

  it("has no path for a network's requests if it is configured with none, and several parts that are named together", async () => {
    await start(['partner', 'network'], { cardNetwork: 'none' });
    expectError(await callBack(), 'not_found');
    assert.equal((await ask('/readyz')).status, 200);
    assert.equal((await ask('/v1/balance')).status, 200);
    expectError(await reveal(), 'not_found');
  });
});
