import assert from 'node:assert/strict';
import type { Declaration } from '../../api/http/route.ts';
import { DECLARATIONS } from '../../api/routes.ts';
import type { ErrorCode } from '../../domain/error-catalogue.ts';
import type { IdPrefix } from '../../domain/ids.ts';
import type { Mode } from '../../domain/mode.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { makeOneOfEach, unrestrictedPartner } from '../support/api/accounts.ts';
import { expectError } from '../support/api/answers.ts';
import { exampleOf, nameOf, parametersOf, pathTo } from '../support/api/declared-operations.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { rowsNaming } from '../support/stored-data.ts';

/** What no id can be, made of one that is. */
const NO_IDS: Record<string, (id: string) => string> = {
  'no prefix': (id) => id.slice(id.indexOf('_') + 1),
  'nothing after the prefix': (id) => id.slice(0, id.indexOf('_') + 1),
  'the prefix of something else': (id) => `txn${id.slice(id.indexOf('_'))}`,
  'upper case': (id) => id.toUpperCase(),
  'a space before it': (id) => `%20${id}`,
  'a line feed after it': (id) => `${id}%0A`,
  'a NUL in it': (id) => `${id.slice(0, -6)}%00${id.slice(-5)}`,
  'a letter that is not used': (id) => `${id.slice(0, -1)}u`,
  'one character more': (id) => `${id}0`,
  'one character less': (id) => id.slice(0, -1),
  'malformed percent-encoding': () => '%E0%A4%A',
  'a surrogate, percent-encoded': () => '%ED%A0%80',
  'an encoded slash': (id) => `x%2f..%2f${id}`,
  'an emoji': () => '%F0%9F%92%A5',
  SQL: () => `'%20OR%20'1'='1`,
  '10,000 characters': () => 'a'.repeat(10_000),
};

/** A month is not an id: test/exports/statements.test.ts. */
const WITH_IDS = DECLARATIONS.filter(({ path }) => /:\w+/.test(path) && !path.includes(':month'));

describe('what has an id', () => {
  let stack: TestStack;
  let owner: TestPartner;
  let stranger: TestPartner;
  let ids: Record<string, string>;
  let untouched: Record<string, string[]>;
  before(async () => {
    stack = await sharedStack('api');
    owner = await unrestrictedPartner(stack);
    stranger = await unrestrictedPartner(stack);
    ids = await makeOneOfEach(owner);
    untouched = await rowsOfOwner();
  });

  for (const declaration of WITH_IDS) {
    const [last = ''] = parametersOf(declaration).slice(-1);
    const code = declaration.errors?.find((error) => error.endsWith('_not_found')) as ErrorCode;
    const ask = (
      partner: TestPartner,
      given: Record<string, string>,
      mode: Mode = declaration.mode ?? 'test',
    ) =>
      partner.call(declaration.method.toUpperCase(), pathTo(declaration, { ...ids, ...given }), {
        ...exampleOf(declaration),
        mode,
      });

    it(`is not there for ${nameOf(declaration)} by another account, or in the other mode`, async () => {
      expectError(await ask(stranger, {}), code);
      if (declaration.mode === undefined) {
        expectError(await ask(owner, {}, 'live'), code);
        expectError(await ask(stranger, {}, 'live'), code);
      }
    });

    it(`is not there for ${nameOf(declaration)} under any other id`, async () => {
      const id = ids[last] ?? '';
      const unknown = newId(id.slice(0, id.indexOf('_')) as IdPrefix);
      for (const [what, shape] of [['an id of nothing', () => unknown], ...Object.entries(NO_IDS)] as const) {
        const answer = await ask(owner, { [last]: shape(id) });
        assert.equal(answer.status, 404, `${what}: ${answer.text}`);
        expectError(answer, code);
      }
    });
  }

  /** A refused reveal is kept (test/cards/recorded-reveals.test.ts). */
  const rowsOfOwner = async () => {
    const { 'public.refused_reveal': _, ...rows } = await rowsNaming(stack, owner.id);
    return rows;
  };

  it('is untouched by all of that, and still there for its owner', async () => {
    assert.deepEqual(await rowsOfOwner(), untouched);
    for (const declaration of WITH_IDS.filter(isRead)) {
      const { status, text } = await owner.call('GET', pathTo(declaration, ids));
      assert.equal(status, 200, `${nameOf(declaration)}: ${text}`);
    }
  });
});

describe('what has an id in live mode', () => {
  it('is not there for a test key', async () => {
    const partner = await fundedPartner(await sharedStack());
    const { json: card } = await createCard(partner, { amount: 1_000 }, { mode: 'live' });
    const body = { amount: 1_000 };
    const topUp = await partner.call('POST', `/cards/${card.id}/topups`, {
      ...{ mode: 'live', idempotencyKey: 'k', body },
    });
    for (const [path, code] of [
      [`/cards/${card.id}`, 'card_not_found'],
      [`/cards/${card.id}/topups`, 'card_not_found'],
      [`/topups/${topUp.json.id}`, 'topup_not_found'],
      [`/operations/${topUp.headers.get('operation-id')}`, 'operation_not_found'],
    ] as const) {
      assert.equal((await partner.call('GET', path, { mode: 'live' })).status, 200, path);
      expectError(await partner.call('GET', path), code);
    }
    const freeze = await partner.call('POST', `/cards/${card.id}/freeze`);
    expectError(freeze, 'card_not_found');
  });
});

const isRead = ({ method }: Declaration) => method === 'get';
