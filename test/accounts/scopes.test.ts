import assert from 'node:assert/strict';
import { createApiKey } from '../../accounts/api-keys.ts';
import { DEFAULT_SCOPES, Scope } from '../../accounts/scope-rules.ts';
import { DECLARATIONS } from '../../api/routes.ts';
import { expectError } from '../support/api/answers.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('scopes', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack('api');
    partner = await stack.createPartner();
  });

  const authorized = async (scopes: readonly Scope[]) => {
    const created = [];
    for (const mode of ['test', 'live'] as const)
      created.push(await createApiKey(stack.operator, { partnerId: partner.id, mode, name: null, scopes }));
    return { test: created[0]?.key ?? '', live: created[1]?.key ?? '' };
  };
  const ask = (
    keys: { test: string; live: string },
    { method, path, mode = 'test' }: (typeof DECLARATIONS)[0],
  ) =>
    partner.call(method.toUpperCase(), path.replace(/:\w+/g, 'x'), {
      headers: { authorization: `Bearer ${keys[mode]}` },
      ...(method === 'get' || method === 'delete' ? {} : { body: '!' }),
    });

  for (const scope of Scope.options) {
    const needing = DECLARATIONS.filter((declaration) =>
      [declaration.scope, declaration.alsoScope].includes(scope),
    );
    it(`of which a key has all but ${scope} refuse it what needs ${scope}, and name it`, async () => {
      const keys = await authorized(Scope.options.filter((other) => other !== scope));
      for (const declaration of needing) {
        const answer = await ask(keys, declaration);
        expectError(answer, 'insufficient_scope');
        assert.ok(answer.json.error.message.includes(` ${scope},`), answer.text);
      }
    });

    it(`of which a key has only ${scope} open what needs ${scope}, and nothing else`, async () => {
      const keys = await authorized([scope]);
      for (const declaration of DECLARATIONS) {
        const { json } = await ask(keys, declaration);
        const needed = [declaration.scope, declaration.alsoScope].filter((one) => one != null);
        const mayUse = needed.every((one) => one === scope);
        assert.equal(json?.error?.code === 'insufficient_scope', !mayUse, declaration.operationId);
      }
    });
  }

  it('are all but api_keys:write for a key that was made without any', async () => {
    const { id } = await createApiKey(stack.operator, { partnerId: partner.id, mode: 'test', name: null });
    const [made] = await asOwner<{ scopes: string[] }>(stack, 'SELECT scopes FROM api_key WHERE id = $1', [
      id,
    ]);
    assert.deepEqual(made?.scopes, DEFAULT_SCOPES);
  });
});
