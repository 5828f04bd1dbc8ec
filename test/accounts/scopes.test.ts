import assert from 'node:assert/strict';
import { Scope } from '../../accounts/scope-rules.ts';
import { DECLARATIONS } from '../../api/routes.ts';
import { expectError } from '../support/api/answers.ts';
import { withNewKey } from '../support/api/keys.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('scopes', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack('api');
    partner = await stack.createPartner();
  });

  const authorized = async (scopes: readonly Scope[]) =>
    withNewKey(stack, await withNewKey(stack, partner, { scopes }), { mode: 'live', scopes });
  const ask = (by: TestPartner, { method, path, mode = 'test' }: (typeof DECLARATIONS)[0]) =>
    by.call(method.toUpperCase(), path.replace(/:\w+/g, 'x'), {
      mode,
      ...(method === 'get' || method === 'delete' ? {} : { body: '!' }),
    });

  for (const scope of Scope.options) {
    const needing = DECLARATIONS.filter((declaration) =>
      [declaration.scope, declaration.alsoScope].includes(scope),
    );
    it(`of which a key has all but ${scope} refuse it what needs ${scope}, and name it`, async () => {
      const restricted = await authorized(Scope.options.filter((other) => other !== scope));
      for (const declaration of needing) {
        const answer = await ask(restricted, declaration);
        expectError(answer, 'insufficient_scope');
        assert.ok(answer.json.error.message.includes(` ${scope},`), answer.text);
      }
    });

    it(`of which a key has only ${scope} open what needs ${scope}, and nothing else`, async () => {
      const restricted = await authorized([scope]);
      for (const declaration of DECLARATIONS) {
        const { json } = await ask(restricted, declaration);
        const needed = [declaration.scope, declaration.alsoScope].filter((one) => one != null);
        const mayUse = needed.every((one) => one === scope);
        assert.equal(json?.error?.code === 'insufficient_scope', !mayUse, declaration.operationId);
      }
    });
  }
});
