import assert from 'node:assert/strict';
import { findViolations } from '../../../dev/imports/find-violations.ts';

describe('the rule about import directions', () => {
  const FORBIDDEN: [path: string, code: string][] = [
    ['domain/money.ts', `import { ulid } from 'ulid';`],
    ['domain/money.ts', `import type { Orm } from '../platform/db/orm.ts';`],
    ['domain/money.ts', `export * from '../ledger/balance.ts';`],
    ['domain/money.ts', `const { query } = await import('../platform/db/sql.ts');`],
    ['platform/config/service.ts', `import { query } from '../db/sql.ts';`],
    ['accounts/faucet.ts', `import { lockCard } from '../cards/lock-card.ts';`],
    ['issuers/increase/client.ts', `import { issueCard } from '../../cards/issue.ts';`],
    ['cards/rules.ts', `import { query } from '../platform/db/sql.ts';`],
    ['cards/issue.ts', `import { guard } from '../api/http/guard.ts';`],
    ['workflows/network-operation.ts', `import { type IssuanceActivities } from '../cards/activities.ts';`],
    ['workflows/network-operation.ts', `import { randomUUID } from 'node:crypto';`],
  ];
  for (const [path, code] of FORBIDDEN) {
    it(`does not let ${path} say ${code}`, () => {
      assert.deepEqual(findViolations(path, code), [
        `${path}: may not import ${/'([^']+)'/.exec(code)?.[1]}`,
      ]);
    });
  }

  const ALLOWED: [path: string, code: string][] = [
    ['domain/fees.ts', `import { z } from 'zod';\nimport { MAX_AMOUNT_CENTS } from './money.ts';`],
    ['payments/decide.ts', `import { lockCard } from '../cards/lock-card.ts';`],
    ['cards/activities.ts', `import type { CardNetwork } from '../issuers/card-network.ts';`],
    ['workflows/network-operation.ts', `import type { IssuanceActivities } from '../cards/activities.ts';`],
    [
      'domain/x.ts',
      `// import { a } from '../db/a.ts';\nexport const text = "import { a } from '../db/a.ts'";`,
    ],
  ];
  for (const [path, code] of ALLOWED) {
    it(`lets ${path} say ${code.replaceAll(/\s+/g, ' ')}`, () => {
      assert.deepEqual(findViolations(path, code), []);
    });
  }

  it('refuses a file in a folder that it does not know', () => {
    assert.deepEqual(findViolations('utils/x.ts', ''), [
      'utils/x.ts: belongs to no room of dev/imports/directions.ts',
    ]);
  });
});
