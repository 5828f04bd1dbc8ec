import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { readOperatorConfig } from '../../platform/config/operator.ts';
import { KeyRing } from '../../platform/crypto/key-ring.ts';
import { openAnswerStart, openEndpointSecret, sealAnswerStart } from '../../webhooks/secrets.ts';
import { assertAudited } from '../support/operator/audited.ts';
import { type Operate, type Outcome, operateIn, operatorEnvironment } from '../support/operator/operate.ts';
import { connectTo, ownerUrlOf } from '../support/postgres.ts';

const URL_A = 'https://hooks.example.com/token-4711';
const URL_B = 'https://other.example.com/b';
const NOWHERE = 'prt_01k0000000000000000000000a';

describe('operator webhook-endpoint', () => {
  let env: NodeJS.ProcessEnv;
  let operate: Operate;
  let owner: pg.Client;
  let partnerId: string;

  before(async () => {
    env = await operatorEnvironment();
    operate = operateIn(env);
    owner = await connectTo(ownerUrlOf(env.DATABASE_URL ?? ''));
  });
  after(() => owner.end());
  beforeEach(async () => {
    partnerId = (await operate('partner', 'create', '--name', 'Hooked')).json.id;
  });

  const endpoint = (verb: string, ...flags: string[]) =>
    operate('webhook-endpoint', verb, partnerId, ...flags);
  const set = (url: string, ...flags: string[]) => endpoint('set', '--url', url, ...flags);
  const show = async () => (await endpoint('show')).json;
  const ids = async (...flags: string[]): Promise<string[]> =>
    (await endpoint('list', ...flags)).json.map(({ id }: { id: string }) => id);
  const audited = async () => (await operate('audit', 'list')).json.length;

  const ring = () => new KeyRing(readOperatorConfig(env).encryptionKeys ?? []);

  /** Seals everything again with a new key, which is the only one from then on. */
  async function replaceKey(id: string): Promise<Outcome> {
    const young = `${id}:${randomBytes(32).toString('base64')}`;
    env.ENCRYPTION_KEYS = `${young},${env.ENCRYPTION_KEYS}`;
    const resealed = await operate('key-ring', 'reseal');
    env.ENCRYPTION_KEYS = young;
    return resealed;
  }

  /** The secrets by the rows, test before live. */
  async function secrets(column = 'secret'): Promise<(string | null)[]> {
    const { rows } = await owner.query(
      `SELECT id, partner_id, mode, ${column} AS sealed FROM webhook_endpoint WHERE partner_id = $1 ORDER BY mode DESC`,
      [partnerId],
    );
    return rows.map((row) => row.sealed && openEndpointSecret(ring(), row, row.sealed));
  }

  it('makes an endpoint for both modes with one secret, which it prints once', async () => {
    const { code, json } = await set(URL_A);
    assert.equal(code, 0);
    assert.deepEqual(Object.keys(json), ['url', 'secret']);
    assert.equal(json.url, URL_A);
    assert.match(json.secret, /^whsec_[A-Za-z0-9+/]{40}$/);
    assert.deepEqual(await secrets(), [json.secret, json.secret]);
    const shown = await show();
    const made = { modes: ['test', 'live'], endpoints: await ids(), origin: 'https://hooks.example.com' };
    await assertAudited(operate, 'webhook-endpoint.set', partnerId, made);
    assert.deepEqual(
      shown.map(({ url, mode, status }: Record<string, string>) => [url, mode, status]),
      ['test', 'live'].map((mode) => [URL_A, mode, 'enabled']),
    );
    assert.ok(!(await operate('audit', 'list')).out.includes(json.secret));
  });

  it('lists the replays of a partner, the newest first, and how far they have got', async () => {
    await set(URL_A);
    const [endpointId] = await ids('--mode', 'live');
    await owner.query(
      `INSERT INTO webhook_replay (id, partner_id, mode, endpoint_id, status, wanted, after_event_id, before_event_id,
         matched, sent, created_at)
       SELECT 'rpl_' || lpad(n::text, 26, '0'), $1, 'live', $2, 'completed', 'all', 'evt_0', 'evt_1', 7, n, now()
       FROM generate_series(1, 2) n`,
      [partnerId, endpointId],
    );
    const { json, code } = await endpoint('replays');
    assert.equal(code, 0);
    assert.deepEqual(
      json.map(({ created, ...shown }: { created: string }) => shown),
      [2, 1].map((sent) => ({
        id: `rpl_${String(sent).padStart(26, '0')}`,
        object: 'webhook_replay',
        endpoint_id: endpointId,
        status: 'completed',
        matched: 7,
        sent,
        mode: 'live',
        events: 'all',
      })),
    );
    assert.deepEqual((await endpoint('replays', '--mode', 'test')).json, []);
    assert.equal((await operate('webhook-endpoint', 'replays', NOWHERE)).code, 1);
  });

  it('sets one mode alone, and then both with the same secret', async () => {
    const test = (await set(URL_A, '--mode', 'test')).json;
    assert.equal((await show()).length, 1);
    const both = (await set(URL_B)).json;
    assert.deepEqual(both, { url: URL_B, secret: test.secret });
    assert.deepEqual(await secrets(), [test.secret, test.secret]);
    const live = await endpoint('show', '--mode', 'live');
    assert.deepEqual([live.json.mode, live.json.url], ['live', URL_B]);
  });

  it('gives each mode its own secret if they are set separately', async () => {
    const test = (await set(URL_A, '--mode', 'test')).json.secret;
    const live = (await set(URL_A, '--mode', 'live')).json.secret;
    assert.notEqual(test, live);
    assert.deepEqual(await secrets(), [test, live]);
    assert.deepEqual((await set(URL_B)).json, { url: URL_B, secret: null });
    assert.deepEqual(await secrets(), [test, live]);
  });

  it('gives both modes one new secret with rotate-secret, and keeps the previous ones', async () => {
    const first = (await set(URL_A)).json.secret;
    const { code, json } = await endpoint('rotate-secret');
    assert.deepEqual([code, Object.keys(json), json.url], [0, ['url', 'secret'], URL_A]);
    assert.notEqual(json.secret, first);
    assert.deepEqual(await secrets(), [json.secret, json.secret]);
    assert.deepEqual(await secrets('previous_secret'), [first, first]);
    const rotated = { modes: ['test', 'live'], endpoints: await ids() };
    await assertAudited(operate, 'webhook-endpoint.rotate-secret', partnerId, rotated);
    const one = (await endpoint('rotate-secret', '--mode', 'live')).json.secret;
    assert.deepEqual(await secrets(), [json.secret, one]);
    assert.notEqual((await show())[1].previous_secret_expires_at, null);
  });

  it('keeps every secret after key-ring reseal, which makes the previous key unnecessary', async () => {
    const first = (await set(URL_A)).json.secret;
    const second = (await endpoint('rotate-secret', '--mode', 'live')).json.secret;
    const { code, json } = await replaceKey('k2');
    assert.equal(code, 0);
    assert.ok(json.resealed.webhook_secrets >= 2);
    assert.ok(json.resealed.previous_webhook_secrets >= 1);
    await assertAudited(operate, 'key-ring.reseal', 'k2', { keys: ['k2', 'k1'] });
    const changes = await audited();
    const again = await operate('key-ring', 'reseal');
    assert.deepEqual(new Set(Object.values(again.json.resealed)), new Set([0]));
    assert.equal(await audited(), changes);
    assert.deepEqual(await secrets(), [first, second]);
    assert.deepEqual(await secrets('previous_secret'), [null, first]);
  });

  it('reseals what each of many endpoints has answered to one event, and mixes none of them up', async () => {
    const eventId = 'evt_01k0000000000000000000000a';
    // More than one statement reads, and one endpoint answered with a 2xx.
    const answers = Array.from({ length: 1_100 }, (_, n) => (n === 7 ? null : `answer ${n}`));
    const sealed = answers.map((text) => text && sealAnswerStart(ring(), eventId, text));
    await owner.query(
      `INSERT INTO delivery_attempt (event_id, endpoint_id, number, started_at, duration_ms, delivered, error, answer_start)
       SELECT $1, 'we_' || lpad(n::text, 26, '0'), 1, now(), 5, s IS NULL, CASE WHEN s IS NOT NULL THEN 'http_500' END, s
       FROM unnest($2::bytea[]) WITH ORDINALITY a (s, n)`,
      [eventId, sealed],
    );
    const [old] = readOperatorConfig(env).encryptionKeys ?? [];
    const { code, json } = await replaceKey('k3');
    assert.deepEqual([code, json.resealed.receiver_responses, json.removable_keys], [0, 1_099, [old?.id]]);
    const { rows } = await owner.query(
      'SELECT answer_start AS sealed FROM delivery_attempt WHERE event_id = $1 ORDER BY endpoint_id',
      [eventId],
    );
    const opened = rows.map(({ sealed }) => sealed && openAnswerStart(ring(), eventId, sealed));
    assert.deepEqual(opened, answers);
  });

  it('disables and enables the endpoint of a mode, and set enables both', async () => {
    await set(URL_A);
    const disabled = await endpoint('disable', '--mode', 'live');
    assert.deepEqual(
      [disabled.code, disabled.json.status, disabled.json.disabled_reason],
      [0, 'disabled', 'disabled by an operator'],
    );
    const ofLive = { modes: ['live'], endpoints: (await ids()).slice(1) };
    await assertAudited(operate, 'webhook-endpoint.disable', partnerId, ofLive);
    const enabled = await endpoint('enable', '--mode', 'live');
    assert.deepEqual([enabled.json.status, enabled.json.disabled_reason], ['enabled', null]);
    const changes = await audited();
    const again = await endpoint('enable');
    assert.deepEqual([again.code, again.json.length], [0, 2]);
    assert.equal(await audited(), changes);
    assert.equal((await endpoint('disable')).json.length, 2);
    await set(URL_A);
    assert.ok((await show()).every((one: { status: string }) => one.status === 'enabled'));
  });

  it('lists all endpoints of each mode, and acts on the one that --endpoint names', async () => {
    await set(URL_A, '--mode', 'test');
    const older = (await ids('--mode', 'test'))[0];
    const newer = `we_${'z'.repeat(26)}`;
    await owner.query(
      `INSERT INTO webhook_endpoint (id, partner_id, mode, url, secret)
       SELECT $2, partner_id, mode, $3, secret FROM webhook_endpoint WHERE partner_id = $1`,
      [partnerId, newer, URL_B],
    );
    assert.deepEqual(await ids('--mode', 'test'), [older, newer]);
    assert.equal((await endpoint('show', '--mode', 'test')).json.id, older);
    assert.equal((await endpoint('show', '--mode', 'test', '--endpoint', newer)).json.id, newer);
    await endpoint('disable', '--endpoint', newer);
    const statuses = (await endpoint('list')).json.map(({ status }: { status: string }) => status);
    assert.deepEqual(statuses, ['enabled', 'disabled']);
    const refused = await set(URL_B, '--mode', 'test');
    assert.equal(refused.code, 1);
    assert.match(refused.err, /has this URL already/);
  });

  it('says how to make an endpoint if there is none, and changes nothing', async () => {
    await set(URL_A, '--mode', 'test');
    const changes = await audited();
    for (const verb of ['show', 'rotate-secret', 'disable', 'enable']) {
      const { code, out, err } = await endpoint(verb, '--mode', 'live');
      assert.deepEqual([code, out], [1, '']);
      assert.match(
        err,
        /has no webhook endpoint for live mode: .*operator webhook-endpoint set prt_\w+ --url U/,
      );
    }
    assert.equal(await audited(), changes);
    assert.equal((await endpoint('disable')).json.length, 1);
  });

  it('accepts a loopback URL if the configuration says so', async () => {
    const local = operateIn({ ...env, WEBHOOK_ALLOW_LOOPBACK_HTTP: 'true' });
    const url = 'http://127.0.0.1:8080/x';
    const { code, json } = await local('webhook-endpoint', 'set', partnerId, '--url', url);
    assert.deepEqual([code, json.url], [0, url]);
  });

  it('needs the key ring to set an endpoint, but not to show it', async () => {
    await set(URL_A);
    const without = operateIn({ ...env, ENCRYPTION_KEYS: '' });
    const { code, err } = await without('webhook-endpoint', 'set', partnerId, '--url', URL_A);
    assert.equal(code, 1);
    assert.match(err, /ENCRYPTION_KEYS/);
    assert.equal((await without('webhook-endpoint', 'show', partnerId)).code, 0);
  });
});
