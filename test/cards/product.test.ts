import assert from 'node:assert/strict';
import {
  ACTOR,
  lastAudit,
  type Operate,
  operateIn,
  operatorEnvironment,
} from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';

describe('operator product', () => {
  let env: NodeJS.ProcessEnv;
  let operate: Operate;

  before(async () => {
    env = await operatorEnvironment();
    operate = operateIn(env);
  });
  beforeEach(() => asOwner(env.DATABASE_URL ?? '', 'TRUNCATE product CASCADE'));

  const setCurrent = (code: string, bin = '424242') =>
    operate('product', 'set-current', code, '--bin', bin, '--network', 'visa');

  const list = async () => (await operate('product', 'list')).json;

  it('creates the first product with set-current', async () => {
    assert.deepEqual(await list(), []);
    const { code, json } = await setCurrent('ONE', '42424242');
    assert.equal(code, 0);
    assert.deepEqual(json, {
      object: 'product',
      product_code: 'ONE',
      bin: '42424242',
      network: 'visa',
      issuer_product: null,
      current: true,
      created: json.created,
      retired_at: null,
    });
    assert.deepEqual(await list(), [json]);
    assert.deepEqual(await lastAudit(operate), {
      actor: ACTOR,
      action: 'product.set-current',
      subject: 'ONE',
      detail: { code: 'ONE', bin: '42424242', network: 'visa', issuerProduct: null },
    });
  });

  it("keeps the issuer's own reference of a product, and removes it if it is left out", async () => {
    const args = ['product', 'set-current', 'ONE', '--bin', '42424242', '--network', 'visa'];
    const { json } = await operate(...args, '--issuer-product', 'program_1');
    assert.equal(json.issuer_product, 'program_1');
    assert.equal((await operate(...args)).json.issuer_product, null);
  });

  it('replaces the current product, changes a BIN and brings back a retired product with set-current', async () => {
    await setCurrent('ONE');
    await setCurrent('TWO');
    assert.deepEqual(await current(), ['TWO']);
    await operate('product', 'retire', 'ONE');
    const { json } = await setCurrent('ONE', '555555');
    assert.deepEqual([json.bin, json.current, json.retired_at], ['555555', true, null]);
    assert.deepEqual(await current(), ['ONE']);
  });

  it('has one current product after eight simultaneous set-current', async () => {
    const codes = Array.from({ length: 8 }, (_, i) => `P${i}`);
    const answers = await Promise.all(codes.map((code) => setCurrent(code)));
    assert.deepEqual(new Set(answers.map((answer) => answer.code)), new Set([0]));
    assert.equal((await current()).length, 1);
    assert.equal((await list()).length, 8);
  });

  it('retires a product once, and refuses to retire the current one', async () => {
    await setCurrent('ONE');
    await setCurrent('TWO');
    const refused = await operate('product', 'retire', 'TWO');
    assert.deepEqual([refused.code, refused.out], [1, '']);
    assert.match(refused.err, /operator product set-current CODE --bin B --network N/);
    const retired = await operate('product', 'retire', 'ONE');
    assert.equal(retired.code, 0);
    assert.notEqual(retired.json.retired_at, null);
    const audited = (await operate('audit', 'list')).json;
    assert.deepEqual([audited[0].action, audited[0].subject], ['product.retire', 'ONE']);
    const again = await operate('product', 'retire', 'ONE');
    assert.deepEqual([again.code, again.json], [0, retired.json]);
    assert.deepEqual((await operate('audit', 'list')).json, audited);
  });

  it('adds products that an account can issue with allow, after the current one', async () => {
    for (const code of ['ONE', 'TWO', 'THREE']) await setCurrent(code);
    const { id } = (await operate('partner', 'create', '--name', 'Allowed')).json;
    const { code, json } = await operate('product', 'allow', id, 'ONE', 'TWO');
    assert.equal(code, 0);
    assert.deepEqual(codesOf(json), ['THREE', 'ONE', 'TWO']);
    const audited = await lastAudit(operate);
    assert.deepEqual(audited, {
      actor: ACTOR,
      action: 'product.allow',
      subject: id,
      detail: { codes: ['ONE', 'TWO'] },
    });
    assert.deepEqual(codesOf((await operate('product', 'allow', id, 'TWO', 'TWO')).json), [
      'THREE',
      'ONE',
      'TWO',
    ]);
    assert.deepEqual(await lastAudit(operate), audited);
  });

  it('allows all given products or none', async () => {
    for (const code of ['OLD', 'ONE', 'TWO']) await setCurrent(code);
    await operate('product', 'retire', 'OLD');
    const { id } = (await operate('partner', 'create', '--name', 'Refused')).json;
    const unknown = await operate('product', 'allow', id, 'ONE', 'NOPE');
    assert.deepEqual(
      [unknown.code, unknown.err],
      [1, 'There is no product NOPE: run "operator product list".\n'],
    );
    const retired = await operate('product', 'allow', id, 'ONE', 'OLD');
    assert.equal(retired.code, 1);
    assert.match(retired.err, /OLD is retired/);
    assert.deepEqual(codesOf((await operate('product', 'allow', id, 'TWO')).json), ['TWO']);
  });

  const codesOf = (products: { product_code: string }[]) => products.map((product) => product.product_code);

  const current = async () =>
    codesOf((await list()).filter((product: { current: boolean }) => product.current));
});
