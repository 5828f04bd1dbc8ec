import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { startApi } from '../../../api/server.ts';
import { freePort } from '../../../dev/free-port.ts';
import {
  simulatedNetworkCredentials,
  simulatedNetworkSecrets,
} from '../../../issuers/simulated/credentials.ts';
import { signBody } from '../../../issuers/simulated/signature.ts';
import { KeyRing } from '../../../platform/crypto/key-ring.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import { expectError } from '../../support/api/answers.ts';
import { sendAsNetwork } from '../../support/api/network-events.ts';
import { createCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { testServers } from '../../support/servers.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import { startWatchingProxy } from '../../support/sockets.ts';
import type { TestStack } from '../../support/stack.ts';

describe('POST /network/callbacks', () => {
  let stack: TestStack;
  let secret: string;
  before(async () => {
    stack = await sharedStack();
    secret = simulatedNetworkCredentials(simulatedNetworkSecrets(stack.operator.ring)[0]).callbackSecret;
  });

  const send = (body: string, signature?: string) =>
    sendAsNetwork(stack, '/network/callbacks', body, signature);
  const about = (token: string, type = 'card.issuance') => JSON.stringify({ token, type });

  it('accepts a hint about an operation that runs, has ended or never existed', async () => {
    const partner = await fundedPartner(stack, 10_000);
    const pending = await createCard(partner, { amount: 1_047 }, { mode: 'live' });
    const active = await createCard(partner, { amount: 1_000 });
    for (const token of [pending.json.id, pending.json.id, active.json.id, newId('card')]) {
      assert.equal((await send(about(token))).status, 204);
    }
    assert.equal((await send(about(newId('topup'), 'card.topup'))).status, 204);
    const { json } = await partner.call('GET', `/cards/${pending.json.id}`, { mode: 'live' });
    assert.equal(json.status, 'funding_pending', 'a hint decides nothing');
  });

  it('answers 401 for a missing or wrong signature', async () => {
    const body = about(newId('card'));
    for (const signature of ['', 'x', signBody(`${body} `, secret), signBody(body, 'another')]) {
      expectError(await send(body, signature), 'invalid_api_key');
    }
  });

  it('accepts a signature with any key of the ring, so that the oldest can be removed after a rotation', async () => {
    const [old] = stack.config.encryptionKeys;
    assert.ok(old);
    const young = { id: 'k2', secret: randomBytes(32) };
    const secretOf = (key: typeof old) =>
      simulatedNetworkCredentials(simulatedNetworkSecrets(new KeyRing([key]))[0]).callbackSecret;
    const body = about(newId('card'));
    for (const [keys, statuses] of [
      [
        [young, old],
        [204, 204],
      ],
      [[young], [204, 401]],
    ] as const) {
      const config = { ...stack.config, port: await freePort(), encryptionKeys: [...keys] };
      const api = await startApi(config, pino({ level: 'silent' }));
      for (const [i, key] of [young, old].entries()) {
        const headers = { 'x-network-signature': signBody(body, secretOf(key)) };
        const url = new URL('/network/callbacks', api.url);
        const { status } = await fetch(url, { method: 'POST', body, headers });
        assert.equal(status, statuses[i], `${keys.length} keys, signed with ${key.id}`);
      }
      await api.stop();
    }
  });

  it('answers 503 within seconds when Temporal freezes', async () => {
    const { address, namespace } = testServers().temporal;
    const last = newId('card');
    const proxy = await startWatchingProxy(address, { from: 'client', text: last }, () => {});
    const temporal = { connectionOptions: { address: proxy.address }, namespace };
    const config = { ...stack.config, port: await freePort(), temporal };
    const api = await startApi(config, pino({ level: 'silent' }));
    const post = async (token: string) => {
      const body = about(token);
      const headers = { 'x-network-signature': signBody(body, secret) };
      // A network that gets no response within 15 s gives up.
      const signal = AbortSignal.timeout(15_000);
      return fetch(new URL('/network/callbacks', api.url), { method: 'POST', body, headers, signal });
    };
    try {
      assert.equal((await post(newId('card'))).status, 204);
      const frozen = await post(last);
      assert.equal(frozen.status, 503);
      assert.equal(JSON.parse(await frozen.text()).error.code, 'unavailable');
    } finally {
      proxy.stop();
      await api.stop();
    }
  });

  it('answers 400 for a signed body that is not a callback', async () => {
    for (const body of ['', '{', '[]', '"x"']) expectError(await send(body), 'validation_failed', ['body']);
    expectError(await send('{}'), 'validation_failed', ['token', 'type']);
    expectError(await send(about('evt_1')), 'validation_failed', ['token']);
    expectError(await send(about(newId('card'), 'card.topup')), 'validation_failed', ['token']);
    expectError(await send(about(newId('topup'))), 'validation_failed', ['token']);
    expectError(await send(about(newId('claim'), 'card.status')), 'validation_failed', ['type']);
  });

  it('answers 413 for more than 1 MiB', async () => {
    expectError(await send(' '.repeat(1_048_577)), 'body_too_large');
  });
});
