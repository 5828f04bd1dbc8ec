import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { freePort } from '../../../dev/free-port.ts';
import { startCodec } from '../../../operator/codec/server.ts';
import type { RingKey } from '../../../platform/crypto/key-ring.ts';
import type { ListeningServer } from '../../../platform/process/listen.ts';
import { createLogger } from '../../../platform/process/logger.ts';
import { issueCardWorkflowId } from '../../../workflows/messages.ts';
import { createCard, settledCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';

const newKey = (id: string): RingKey => ({ id, secret: randomBytes(32) });
const newToken = () => randomBytes(24).toString('base64url');
const [OLD, NEW] = [newKey('old'), newKey('new')];
const [OLD_TOKEN, NEW_TOKEN] = [newToken(), newToken()];

/** As Temporal's JSON has it. */
interface JsonPayload {
  metadata: Record<string, string>;
  data: string;
}

describe('a rotation of CODEC_KEYS and CODEC_TOKENS while the service runs', () => {
  /** Processes that have the new key behind the old one, and before it. */
  let [first, second]: TestStack[] = [];
  let partner: TestPartner;
  before(async () => {
    first = await startTestStack({ codecKeys: [OLD, NEW] });
    partner = await fundedPartner(first);
  });
  after(() => Promise.all([first, second].map((stack) => stack?.stop())));

  async function withEndpoint<T>(
    keys: RingKey[],
    tokens: string[],
    work: (endpoint: ListeningServer) => Promise<T>,
  ): Promise<T> {
    const config = { host: '127.0.0.1', port: 0, keys, tokens, issuer: null, allowedOrigins: [] };
    const logger = createLogger('codec', 'silent');
    const endpoint = await startCodec({ ...config, namespace: 'default', logLevel: 'silent' }, logger);
    return work(endpoint).finally(() => endpoint.stop());
  }

  /** The summary of a card's workflow, as Temporal has it. */
  async function sealedSummary(stack: TestStack, cardId: string): Promise<JsonPayload> {
    const { raw } = await stack.client.workflow.getHandle(issueCardWorkflowId(cardId)).describe();
    const { metadata, data } = raw.executionConfig?.userMetadata?.summary ?? {};
    const base64 = (bytes: Uint8Array | null | undefined) => Buffer.from(bytes ?? []).toString('base64');
    const entries = Object.entries(metadata ?? {}).map(([name, value]) => [name, base64(value)]);
    return { metadata: Object.fromEntries(entries), data: base64(data) };
  }

  const keyOf = ({ metadata }: JsonPayload) =>
    Buffer.from(metadata['encryption-key-id'] ?? '', 'base64').toString();

  async function decoded(endpoint: ListeningServer, token: string, payload: JsonPayload): Promise<unknown> {
    const response = await fetch(`${endpoint.url}/decode`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify({ payloads: [payload] }),
    });
    if (response.status !== 200) return response.status;
    const { payloads } = (await response.json()) as { payloads: JsonPayload[] };
    return Buffer.from(payloads[0]?.data ?? '', 'base64').toString();
  }

  it('lets processes with either key first share workflows, and the endpoint decrypts what either wrote', async () => {
    const pending = await createCard(partner, { amount: 1_041 }, { mode: 'live' });
    assert.equal(pending.status, 202);
    second = await startTestStack(
      { ...(first as TestStack).config, codecKeys: [NEW, OLD], port: await freePort() },
      { product: false },
    );
    const there = second.partnerHere(partner);
    const issued = await createCard(there, { amount: 1_000 }, { mode: 'live' });
    assert.equal(issued.status, 201);
    assert.equal((await createCard(partner, { amount: 1_000 }, { mode: 'live' })).status, 201);

    await (first as TestStack).stop();
    first = undefined as never;
    assert.equal((await settledCard(there, pending.json.id)).status, 'active');
    const [before, after] = [
      await sealedSummary(second, pending.json.id),
      await sealedSummary(second, issued.json.id),
    ];
    assert.deepEqual([keyOf(before), keyOf(after)], ['old', 'new']);
    await withEndpoint([NEW, OLD], [OLD_TOKEN], async (endpoint) => {
      assert.match(String(await decoded(endpoint, OLD_TOKEN, before)), new RegExp(pending.json.id));
      assert.match(String(await decoded(endpoint, OLD_TOKEN, after)), new RegExp(issued.json.id));
    });
    await withEndpoint([NEW], [OLD_TOKEN], async (endpoint) => {
      const sealed = Buffer.from(before.data, 'base64').toString();
      assert.equal(await decoded(endpoint, OLD_TOKEN, before), sealed, 'it is left as it is');
    });
  });

  it('lets the holders of both tokens decrypt until the old one is removed', async () => {
    const { json } = await createCard(
      (second as TestStack).partnerHere(partner),
      { amount: 1_000 },
      { mode: 'live' },
    );
    const payload = await sealedSummary(second as TestStack, json.id);
    await withEndpoint([NEW, OLD], [OLD_TOKEN, NEW_TOKEN], async (endpoint) => {
      for (const token of [OLD_TOKEN, NEW_TOKEN])
        assert.match(String(await decoded(endpoint, token, payload)), new RegExp(json.id));
    });
    await withEndpoint([NEW, OLD], [NEW_TOKEN], async (endpoint) => {
      assert.match(String(await decoded(endpoint, NEW_TOKEN, payload)), new RegExp(json.id));
      assert.equal(await decoded(endpoint, OLD_TOKEN, payload), 401);
    });
  });
});
