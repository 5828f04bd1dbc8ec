import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findViolations } from '../../../dev/imports/find-violations.ts';

describe('the rule about import directions', () => {
  const FORBIDDEN: [path: string, code: string][] = [
    ['domain/money.ts', `import { query } from '../platform/db/sql.ts';`],
    ['domain/money.ts', `import { ulid } from 'ulid';`],
    ['domain/money.ts', `import { readFileSync } from 'node:fs';`],
    ['domain/money.ts', `import type { Orm } from '../platform/db/orm.ts';`],
    ['domain/money.ts', `export { query } from '../platform/db/sql.ts';`],
    ['domain/money.ts', `export * from '../ledger/balance.ts';`],
    ['domain/money.ts', `import '../platform/config/service.ts';`],
    ['domain/money.ts', `const { query } = await import('../platform/db/sql.ts');`],
    ['domain/money.ts', `import {\n  query,\n  type Reader,\n} from '../platform/db/sql.ts';`],
    ['domain/money.ts', `import type {\n  Orm,\n} from '../platform/db/orm.ts';`],
    // Within the platform.
    ['platform/crypto/key-ring.ts', `import { readConfig } from '../config/service.ts';`],
    ['platform/config/service.ts', `import { query } from '../db/sql.ts';`],
    ['platform/db/orm.ts', `import { applyPosting } from '../../ledger/apply-posting.ts';`],
    ['platform/db/orm.ts', `import { CardEntity } from '../../cards/tables.ts';`],
    ['platform/db/entities.ts', `import { issueCard } from '../../cards/issue.ts';`],
    // Between the capabilities: each knows only those below it.
    ['ledger/balances.ts', `import { claimIdempotencyKey } from '../requests/claim.ts';`],
    ['requests/claim.ts', `import { createPartner } from '../accounts/partners.ts';`],
    ['accounts/faucet.ts', `import { lockCard } from '../cards/lock-card.ts';`],
    ['cards/operator.ts', `import { readAuthorizations } from '../payments/reads.ts';`],
    ['cards/transfers/top-up.ts', `import type { Settlement } from '../../payments/settle.ts';`],
    ['payments/decide.ts', `import { retryEvent } from '../issuers/inbox/decide-by-hand.ts';`],
    ['payments/decide.ts', `import { createEndpoint } from '../webhooks/endpoints.ts';`],
    ['webhooks/endpoints.ts', `import { issueCard } from '../cards/issue.ts';`],
    ['webhooks/relay-jobs.ts', `import { creditPayments } from '../deposits/credit-payments.ts';`],
    ['deposits/open.ts', `import { issueCard } from '../cards/issue.ts';`],
    ['issuers/inbox/jobs.ts', `import { closeDays } from '../../exports/close-days.ts';`],
    ['exports/close-days.ts', `import { guard } from '../api/http/guard.ts';`],
    // The outside world.
    ['issuers/increase/client.ts', `import { issueCard } from '../../cards/issue.ts';`],
    ['issuers/live-network.ts', `import { keepEvent } from './inbox/kept-events.ts';`],
    ['issuers/card-network.ts', `import { openRequestBudget } from './request-budget.ts';`],
    ['cards/issue.ts', `import { startLiveNetwork } from '../issuers/live-network.ts';`],
    ['cards/secure-details-routes.ts', `import { startLiveNetwork } from '../issuers/live-network.ts';`],
    ['issuers/inbox/routes.ts', `import { simulatedIngress } from '../simulated/ingress.ts';`],
    ['deposits/tron/tron-chain.ts', `import { takeBlocks } from '../take-blocks.ts';`],
    ['webhooks/client/webhook-client.ts', `import { takeDeliveries } from '../deliveries.ts';`],
    // By the names of files.
    ['cards/rules.ts', `import { query } from '../platform/db/sql.ts';`],
    ['cards/resource.ts', `import { query } from '../platform/db/sql.ts';`],
    ['cards/resource.ts', `import { lockCard } from './lock-card.ts';`],
    ['cards/tables.ts', `import type { CardResource } from './resource.ts';`],
    ['cards/issue.ts', `import { guard } from '../api/http/guard.ts';`],
    ['cards/routes.ts', `import { partnerRoutes } from '../api/routes.ts';`],
    ['cards/issue.ts', `import { WrongUsage } from '../operator/errors.ts';`],
    ['cards/operator.ts', `import { runOperator } from '../operator/program.ts';`],
    ['cards/issue.ts', `import { notifyInTurns } from '../worker/notify-in-turns.ts';`],
    ['cards/jobs.ts', `import { startWorker } from '../worker/start-worker.ts';`],
    // The roots and their frames.
    ['api/http/guard.ts', `import { issueCard } from '../../cards/issue.ts';`],
    ['operator/verbs.ts', `import { readCard } from '../cards/reads.ts';`],
    ['operator/main.ts', `import { guard } from '../api/http/guard.ts';`],
    ['api/app.ts', `import { startWorker } from '../worker/start-worker.ts';`],
    ['worker/start-worker.ts', `import { issueCard } from '../workflows/issue-card.ts';`],
    ['cards/routes.ts', `import { issueCard } from '../workflows/issue-card.ts';`],
    ['workflows/issue-card.ts', `import { createIssuanceActivities } from '../cards/activities.ts';`],
    ['workflows/issue-card.ts', `import { type IssuanceActivities } from '../cards/activities.ts';`],
    ['workflows/issue-card.ts', `import type { Issuance } from '../cards/issue.ts';`],
    ['workflows/issue-card.ts', `import { randomUUID } from 'node:crypto';`],
    ['workflows/issue-card.ts', `import { Client } from '@temporalio/client';`],
    ['workflows/issue-card.ts', `import { query } from '../platform/db/sql.ts';`],
    ['platform/temporal/carried-headers.ts', `import { Client } from '@temporalio/client';`],
  ];
  for (const [path, code] of FORBIDDEN) {
    const specifier = /'([^']+)'/.exec(code)?.[1];
    it(`does not let ${path} say ${code.replaceAll(/\s+/g, ' ')}`, () => {
      assert.deepEqual(findViolations(path, code), [`${path}: may not import ${specifier}`]);
    });
  }

  const ALLOWED: [path: string, code: string][] = [
    ['domain/fees.ts', `import { z } from 'zod';\nimport { MAX_AMOUNT_CENTS } from './money.ts';`],
    ['platform/db/orm.ts', `import { Mode } from '../../domain/mode.ts';\nimport pg from 'pg';`],
    ['platform/config/service.ts', `import type { RingKey } from '../crypto/key-ring.ts';`],
    ['cards/issue.ts', `import { applyPosting } from '../ledger/apply-posting.ts';`],
    ['cards/transfers/top-up.ts', `import { lockCard } from '../lock-card.ts';`],
    ['payments/decide.ts', `import { lockCard } from '../cards/lock-card.ts';`],
    ['payments/test-mode-routes.ts', `import { fold } from '../issuers/simulated/fold.ts';`],
    ['cards/activities.ts', `import type { CardNetwork } from '../issuers/card-network.ts';`],
    ['cards/routes.ts', `import { issueCardWorkflowId } from '../workflows/messages.ts';`],
    ['cards/status-routes.ts', `import { declare } from '../api/http/route.ts';`],
    ['cards/operator.ts', `import { WrongUsage } from '../operator/errors.ts';`],
    ['webhooks/relay-jobs.ts', `import { notifyInTurns } from '../worker/notify-in-turns.ts';`],
    ['cards/resource.ts', `import type { Row } from '../platform/db/entities.ts';`],
    ['payments/transaction-resource.ts', `import { CardResource } from '../cards/resource.ts';`],
    ['issuers/increase/client.ts', `import { oldestFirst } from '../oldest-first.ts';`],
    [
      'issuers/reconciliation/reconcile.ts',
      `import { receiveTransaction } from '../inbox/receive-transaction.ts';`,
    ],
    ['exports/attention.ts', `import { readUnreadEvents } from '../issuers/inbox/attention.ts';`],
    ['activities/card-activities.ts', `import { createIssuanceActivities } from '../cards/activities.ts';`],
    ['workflows/issue-card.ts', `import type { IssuanceActivities } from '../cards/activities.ts';`],
    ['workflows/issue-card.ts', `import { condition } from '@temporalio/workflow';`],
    ['api/server.ts', `import { startLiveNetwork } from '../issuers/live-network.ts';`],
    ['api/routes.ts', `import { cards } from '../cards/routes.ts';`],
    ['operator/program.ts', `const { cardNoun } = await import('../cards/operator.ts');`],
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
