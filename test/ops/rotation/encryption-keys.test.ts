import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { freePort } from '../../../dev/free-port.ts';
import {
  simulatedNetworkCredentials,
  simulatedNetworkSecrets,
} from '../../../issuers/simulated/credentials.ts';
import { signBody } from '../../../issuers/simulated/signature.ts';
import { resealEverything } from '../../../operator/reseal.ts';
import { KeyRing, type RingKey } from '../../../platform/crypto/key-ring.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import { setEndpoint } from '../../../webhooks/endpoints.ts';
import { signEvent } from '../../../webhooks/secrets.ts';
import { issueCard, reveal, revealingPartner } from '../../support/api/reveals.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean } from '../../support/money.ts';
import { environmentOf, operateIn } from '../../support/operator/operate.ts';
import { asOwner } from '../../support/postgres.ts';
import { type Answer, startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { answer, type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

const newKey = (id: string): RingKey => ({ id, secret: randomBytes(32) });
const [OLD, NEW] = [newKey('old'), newKey('new')];

/** Everything that is sealed, with the id of the key that it is under. */
const SEALED_UNDER = `
  SELECT convert_from(substr(v, 2, get_byte(v, 0)), 'UTF8') AS key, count(*)::int AS rows FROM (
    SELECT request AS v FROM idempotency_claim UNION ALL SELECT response_body FROM idempotency_claim
    UNION ALL SELECT secret FROM webhook_endpoint UNION ALL SELECT previous_secret FROM webhook_endpoint
    UNION ALL SELECT answer_start FROM delivery_attempt UNION ALL SELECT root FROM ring_key) s
  WHERE v IS NOT NULL GROUP BY 1`;

describe('a rotation of ENCRYPTION_KEYS while the service runs', () => {
  /** Processes that have the new key behind the old one, before it, and alone. */
  let [first, second, last]: TestStack[] = [];
  let receiver: Receiver;
  let partner: TestPartner;
  let secret: string;
  /** What a partner asked for while the old key was first, and what it got. */
  const asked: { key: string; path: string; mode: 'test' | 'live'; body: object; answer: Answer }[] = [];
  const cards: { id: string; mode: 'test' | 'live'; details: string }[] = [];

  const startWith = async (encryptionKeys: RingKey[]) =>
    first === undefined
      ? startTestStack({ encryptionKeys })
      : startTestStack({ ...first.config, encryptionKeys, port: await freePort() }, { product: false });

  const reseal = (encryptionKeys: RingKey[]) => {
    const { config } = first as TestStack;
    return operateIn(environmentOf({ ...config, encryptionKeys }))('key-ring', 'reseal');
  };
  const sealedUnder = () => asOwner<{ key: string; rows: number }>(first as TestStack, SEALED_UNDER);

  before(async () => {
    receiver = await startReceiver();
    receiver.behave((_request, response) => response.writeHead(500).end('no'));
    first = await startWith([OLD, NEW]);
    partner = await revealingPartner(first);
    const endpoint = { partnerId: partner.id, modes: ['test', 'live'] as const, url: receiver.url };
    ({ secret } = (await setEndpoint(first.operator, endpoint)) as { secret: string });
    for (const mode of ['test', 'live'] as const) {
      const id = await issueCard(partner, mode);
      cards.push({ id, mode, details: (await reveal(partner, id, mode)).text });
      const [key, path, body] = [randomUUID(), '/cards', { amount: 1_000, external_ref: randomUUID() }];
      const given = await partner.call('POST', path, { mode, body, idempotencyKey: key });
      asked.push({ key, path, mode, body, answer: given });
    }
    const [key, body] = [randomUUID(), { amount: 1_047, external_ref: randomUUID() }];
    const pending = await partner.call('POST', '/cards', { mode: 'live', body, idempotencyKey: key });
    assert.equal(pending.status, 202);
    asked.push({ key, path: '/cards', mode: 'live', body, answer: pending });
    await until('a receiver has answered', async () => {
      const [attempt] = await asOwner(
        first as TestStack,
        'SELECT FROM delivery_attempt WHERE answer_start IS NOT NULL',
      );
      return attempt;
    });
  });
  after(async () => {
    await Promise.all([first, second, last].map((stack) => stack?.stop()));
    await receiver.stop();
  });

  async function assertKnown(stack: TestStack): Promise<void> {
    const here = stack.partnerHere(partner);
    for (const { key, path, mode, body, answer: given } of asked) {
      const again = await here.call('POST', path, { mode, body, idempotencyKey: key });
      assert.deepEqual([again.status, again.text], [given.status, given.text]);
    }
    await asOwner(stack, 'DELETE FROM card_reveal');
    for (const { id, mode, details } of cards) assert.equal((await reveal(here, id, mode)).text, details);
  }

  async function answerToCallback({ config }: TestStack, key: RingKey): Promise<number> {
    const [secret] = simulatedNetworkSecrets(new KeyRing([key]));
    const body = JSON.stringify({ token: newId('card'), type: 'card.issuance' });
    const signature = signBody(body, simulatedNetworkCredentials(secret).callbackSecret);
    const response = await fetch(`http://${config.host}:${config.port}/network/callbacks`, {
      ...{ method: 'POST', body, headers: { 'x-network-signature': signature } },
    });
    return response.status;
  }

  it('lets processes with either key first work side by side', async () => {
    second = await startWith([NEW, OLD]);
    await assertKnown(second);
    const made = await second.createPartner('under the new key');
    assert.equal((await (first as TestStack).partnerHere(made).call('GET', '/balance')).status, 200);
    for (const [at, elsewhere] of [
      [first, second],
      [second, first],
    ] as TestStack[][]) {
      const request = {
        mode: 'live',
        body: { amount: 1_000, external_ref: randomUUID() },
        idempotencyKey: randomUUID(),
      } as const;
      const given = await at?.partnerHere(partner).call('POST', '/cards', request);
      assert.equal(given?.status, 201);
      const again = await elsewhere?.partnerHere(partner).call('POST', '/cards', request);
      assert.equal(again?.text, given?.text);
      for (const key of [OLD, NEW]) assert.equal(await answerToCallback(at as TestStack, key), 204);
    }
  });

  it('finds a process that still seals with the old key, and says that the key may not be removed', async () => {
    await createCard(partner, { amount: 1_000 });
    // As if it had come while the command runs.
    await asOwner(
      first as TestStack,
      `UPDATE idempotency_claim SET created_at = now() + interval '1 minute'
      WHERE id = (SELECT max(id) FROM idempotency_claim)`,
    );
    const { code, json } = await reseal([NEW, OLD]);
    assert.deepEqual([code, json.still_used_keys, json.removable_keys], [1, ['old'], []]);
  });

  it('resumes resealing where it was interrupted, and leaves nothing under the old key', async () => {
    await createCard(partner, { amount: 1_000 });
    await (first as TestStack).stop();
    first = { ...(first as TestStack), stop: async () => {} };
    const ring = new KeyRing([NEW, OLD]);
    await assert.rejects(
      resealEverything({ ...(second as TestStack).operator, ring }, () => {
        throw new Error('interrupted');
      }),
      /interrupted/,
    );
    const { code, json } = await reseal([NEW, OLD]);
    assert.deepEqual([code, json.removable_keys, json.left, json.unreadable], [0, ['old'], 0, 0]);
    assert.deepEqual(
      (await sealedUnder()).map(({ key }) => key),
      ['new'],
    );
    await assertKnown(second as TestStack);
  });

  it('keeps everything that was made under the old key valid without it, including API keys and card numbers', async () => {
    await (second as TestStack).stop();
    second = undefined as never;
    last = await startWith([NEW]);
    await assertKnown(last);
    const here = last.partnerHere(partner);
    receiver.behave(answer(200));
    const { json: card } = await createCard(here, { amount: 1_000 });
    const sent = await until('its event is sent', async () =>
      receiver.received.find(({ body }) => JSON.parse(body).data?.card?.id === card.id),
    );
    const nowMs = Number(sent.headers['x-service-timestamp']);
    const event = { eventId: sent.id, body: sent.body, nowMs, standardWebhooks: false };
    const signed = signEvent({ ...event, secrets: [secret] });
    assert.equal(sent.headers['x-service-signature'], signed['X-Service-Signature']);
    await assertLedgerClean(last);
  });

  it("accepts the network's callbacks under the new key alone, so that a leaked old one is useless", async () => {
    assert.equal(await answerToCallback(last as TestStack, NEW), 204);
    assert.equal(await answerToCallback(last as TestStack, OLD), 401);
  });

  it('stops a process with only the old key from starting', async () => {
    await assert.rejects(startWith([OLD]), /ENCRYPTION_KEYS has no key "new": add it back/);
  });

  it('names the missing key if one was removed too early', async () => {
    const lost = new KeyRing([newKey('lost')]).seal('x', 'y');
    await asOwner(
      first as TestStack,
      'UPDATE idempotency_claim SET request = $1 WHERE id = (SELECT max(id) FROM idempotency_claim)',
      [lost],
    );
    const { code, json } = await reseal([NEW]);
    assert.deepEqual([code, json.missing_keys, json.unreadable], [1, ['lost'], 1]);
  });
});
