import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findViolations } from '../../../dev/imports/find-violations.ts';

describe('the rule about import directions', () => {
  const FORBIDDEN: [path: string, code: string][] = [
    ['domain/money.ts', `import { query } from '../db/sql.ts';`],
    ['domain/money.ts', `import { ulid } from 'ulid';`],
    ['domain/money.ts', `import { readFileSync } from 'node:fs';`],
    ['domain/money.ts', `import type { Orm } from '../db/orm.ts';`],
    ['domain/money.ts', `export { query } from '../db/sql.ts';`],
    ['domain/money.ts', `export * from '../ledger/balance.ts';`],
    ['domain/money.ts', `import '../config/service.ts';`],
    ['domain/money.ts', `const { query } = await import('../db/sql.ts');`],
    ['domain/money.ts', `import {\n  query,\n  type Reader,\n} from '../db/sql.ts';`],
    ['domain/money.ts', `import type {\n  Orm,\n} from '../db/orm.ts';`],
    ['platform/db/orm.ts', `import { applyOperation } from '../ledger/apply-posting.ts';`],
    ['ledger/balance.ts', `import { beginIssuance } from '../commands/funding/issuance.ts';`],
    ['commands/funding/open-issuance.ts', `import { guard } from '../../api/http/guard.ts';`],
    [
      'commands/funding/open-issuance.ts',
      `import type { CardNetworkAdapter } from '../../adapters/card-networks/adapter.ts';`,
    ],
    ['activities/fundings.ts', `import { applyOperation } from '../ledger/apply-posting.ts';`],
    ['issuers/luhn.ts', `import { beginIssuance } from '../../commands/funding/issuance.ts';`],
    ['workflows/issue-card.ts', `import { createCardIssuanceActivities } from '../activities/fundings.ts';`],
    ['workflows/issue-card.ts', `import { type CardIssuanceActivities } from '../activities/fundings.ts';`],
    ['workflows/issue-card.ts', `import { randomUUID } from 'node:crypto';`],
    ['workflows/issue-card.ts', `import { Client } from '@temporalio/client';`],
    ['workflows/issue-card.ts', `import { query } from '../db/sql.ts';`],
    ['cards/routes.ts', `import { issueCard } from '../workflows/issue-card.ts';`],
    [
      'cards/routes.ts',
      `import { createSimulatedClient } from '../adapters/card-networks/simulated/client.ts';`,
    ],
    [
      'issuers/inbox/routes.ts',
      `import { simulatedIngress } from '../adapters/card-networks/simulated/ingress.ts';`,
    ],
    [
      'cards/secure-details-routes.ts',
      `import { startLiveNetwork } from '../adapters/card-networks/live-network.ts';`,
    ],
    ['cards/routes.ts', `import { startWorker } from '../worker/start-worker.ts';`],
    ['domain/money.ts', `import { readConfig } from '../config/service.ts';`],
    ['operator/main.ts', `import { guard } from '../api/http/guard.ts';`],
    ['worker/start-worker.ts', `import { issueCard } from '../workflows/issue-card.ts';`],
    ['platform/config/service.ts', `import { query } from '../db/sql.ts';`],
    ['platform/crypto/key-ring.ts', `import { readConfig } from '../config/service.ts';`],
  ];
  for (const [path, code] of FORBIDDEN) {
    const specifier = /'([^']+)'/.exec(code)?.[1];
    it(`does not let ${path} say ${code.replaceAll(/\s+/g, ' ')}`, () => {
      assert.deepEqual(findViolations(path, code), [`${path}: may not import ${specifier}`]);
    });
  }

  const ALLOWED: [path: string, code: string][] = [
    ['domain/fees.ts', `import { z } from 'zod';\nimport { MAX_AMOUNT_CENTS } from './money.ts';`],
    ['platform/db/orm.ts', `import { Mode } from '../domain/mode.ts';\nimport pg from 'pg';`],
    ['commands/funding/open-issuance.ts', `import { applyOperation } from '../../ledger/apply-posting.ts';`],
    ['activities/fundings.ts', `import { beginIssuance } from '../commands/funding/issuance.ts';`],
    ['workflows/issue-card.ts', `import type { CardIssuanceActivities } from '../activities/fundings.ts';`],
    ['workflows/issue-card.ts', `import { condition } from '@temporalio/workflow';`],
    ['cards/routes.ts', `import { issueCardWorkflowId } from '../workflows/messages.ts';`],
    ['cards/secure-details-routes.ts', `import type { CardNetwork } from '../domain/card-network.ts';`],
    ['api/server.ts', `import { startLiveNetwork } from '../adapters/card-networks/live-network.ts';`],
    ['api/app.ts', `import type { Config } from '../config/service.ts';`],
    ['platform/config/service.ts', `import type { RingKey } from '../crypto/key-ring.ts';`],
  ];
  for (const [path, code] of ALLOWED) {
    it(`lets ${path} say ${code.replaceAll(/\s+/g, ' ')}`, () => {
      assert.deepEqual(findViolations(path, code), []);
    });
  }

  it('names every violation in a file', () => {
    const code = `import { a } from '../db/a.ts';\nimport type { B } from '../api/b.ts';\nimport { z } from 'zod';\nimport 'pg';`;
    assert.deepEqual(findViolations('domain/x.ts', code), [
      'domain/x.ts: may not import ../db/a.ts',
      'domain/x.ts: may not import pg',
      'domain/x.ts: may not import ../api/b.ts',
    ]);
  });

  it('refuses a file in a folder that it does not know', () => {
    for (const path of ['utils/x.ts', 'index.ts', 'domains/x.ts']) {
      assert.deepEqual(findViolations(path, ''), [
        `${path}: belongs to no room of dev/imports/directions.ts`,
      ]);
    }
  });

  it('ignores what a comment or a string says', () => {
    const code = `// import { a } from '../db/a.ts';\nexport const text = "import { a } from '../db/a.ts'";`;
    assert.deepEqual(findViolations('domain/x.ts', code), []);
  });

  it('fails the check of a project that breaks it, and passes a project that does not', async () => {
    const project = await mkdtemp(join(tmpdir(), 'imports-'));
    const check = () =>
      spawnSync(
        process.execPath,
        [fileURLToPath(new URL('../../../dev/check-imports.ts', import.meta.url))],
        {
          cwd: project,
          encoding: 'utf8',
        },
      );
    try {
      await mkdir(join(project, 'domain'));
      await writeFile(join(project, 'domain/x.ts'), `import { z } from 'zod';`);
      assert.equal(check().status, 0);
      await writeFile(join(project, 'domain/y.ts'), `import { a } from '../db/a.ts';`);
      const { status, stderr } = check();
      assert.equal(status, 1);
      assert.match(stderr, /^domain\/y\.ts: may not import \.\.\/db\/a\.ts$/m);
    } finally {
      await rm(project, { recursive: true });
    }
  });
});

describe('the rule against import cycles', () => {
  const root = new URL('../../../', import.meta.url);
  let project: string;

  beforeEach(async () => {
    project = await mkdtemp(join(tmpdir(), 'cycles-'));
    await copyFile(new URL('biome.json', root), join(project, 'biome.json'));
    await mkdir(join(project, 'dev/lint'), { recursive: true });
    const rule = 'dev/lint/determinism.grit';
    await copyFile(new URL(rule, root), join(project, rule));
  });
  afterEach(() => rm(project, { recursive: true }));

  async function lint(files: Record<string, string>): Promise<ReturnType<typeof spawnSync>> {
    for (const [name, code] of Object.entries(files)) await writeFile(join(project, name), code);
    const biome = fileURLToPath(new URL('node_modules/@biomejs/biome/bin/biome', root));
    return spawnSync(process.execPath, [biome, 'lint', '--vcs-enabled=false', '.'], {
      cwd: project,
      encoding: 'utf8',
    });
  }

  const CYCLES: [what: string, files: Record<string, string>][] = [
    [
      'two files that import each other',
      {
        'a.ts': `import { b } from './b.ts';\nexport const a = () => b;\n`,
        'b.ts': `import { a } from './a.ts';\nexport const b = () => a;\n`,
      },
    ],
    [
      'files that import only types',
      {
        'a.ts': `import type { B } from './b.ts';\nexport interface A {\n  b: B;\n}\n`,
        'b.ts': `import type { C } from './c.ts';\nexport interface B {\n  c: C;\n}\n`,
        'c.ts': `import type { A } from './a.ts';\nexport interface C {\n  a: A;\n}\n`,
      },
    ],
  ];
  for (const [what, files] of CYCLES) {
    it(`refuses a cycle of ${what}`, async () => {
      const { status, stderr } = await lint(files);
      assert.equal(status, 1);
      assert.match(String(stderr), /lint\/suspicious\/noImportCycles/);
    });
  }

  it('allows files that import in one direction', async () => {
    const { status, stderr } = await lint({
      'a.ts': `import type { B } from './b.ts';\nexport interface A {\n  b: B;\n}\n`,
      'b.ts': 'export interface B {\n  c: number;\n}\n',
    });
    assert.equal(status, 0, String(stderr));
  });
});
