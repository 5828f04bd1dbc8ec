import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { issueCardWorkflowId } from '../../workflows/messages.ts';
import { createCard } from '../support/cards.ts';
import { bundleFile, environmentOf, scratchFolder } from '../support/crash/processes.ts';
import { fundedPartner } from '../support/money.ts';
import { bundleNextRelease } from '../support/next-release/bundle.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ACTIVE = 'test/replay/histories/issue-card/active.json';
const DELIVERED = 'test/replay/histories/deliver-webhook/delivered.json';

describe('npm run replay', () => {
  let stack: TestStack;
  const folder = scratchFolder();
  const nextRelease = join(folder, 'next-release.js');
  let today: string;
  before(async () => {
    stack = await sharedStack();
    today = await bundleFile(folder);
    writeFileSync(nextRelease, (await bundleNextRelease()).code);
  });

  function replay(args: string[], bundle: string): Promise<{ code: number; out: string; err: string }> {
    const env = { ...environmentOf(stack.config), DATABASE_URL: '', WORKFLOW_BUNDLE: bundle };
    return new Promise((resolve) => {
      execFile(process.execPath, ['operator/replay.ts', ...args], { cwd: ROOT, env }, (error, out, err) =>
        resolve({ code: Number(error?.code ?? 0), out, err }),
      );
    });
  }

  it('says of each file whether it replays', async () => {
    const { code, out } = await replay([ACTIVE, DELIVERED], today);
    assert.match(
      out,
      new RegExp(`^replays +${ACTIVE}\nreplays +${DELIVERED}\n\n2 replayed, 0 of them failed.\n$`),
    );
    assert.equal(code, 0);
  });

  it('names histories that do not replay, with the reason and what to do, and exits with code 1', async () => {
    const { code, out } = await replay([ACTIVE, DELIVERED], nextRelease);
    assert.match(out, new RegExp(`^DOES NOT REPLAY +${ACTIVE}\n +.*Nondeterminism error`));
    assert.match(
      out,
      new RegExp(`\nreplays +${DELIVERED}\n\n2 replayed, 1 of them failed.\n\n.*\`patched\``, 's'),
    );
    assert.equal(code, 1);
  });

  it('fetches a workflow by its id, and workflows that a query finds', async () => {
    const partner = await fundedPartner(stack);
    const { json } = await createCard(partner, { amount: 1_000 }, { mode: 'live' });
    const id = issueCardWorkflowId(json.id);
    await stack.client.workflow.getHandle(id).result();
    const { code, out, err } = await replay([id, '--query', `WorkflowId = '${id}'`], today);
    assert.match(out, new RegExp(`^(replays +${id}\n){2}`), err);
    assert.equal(code, 0);
  });

  it('explains what it cannot read, and how it is used', async () => {
    const none = await replay(['issue-card/card_none'], today);
    assert.deepEqual(
      [none.code, none.err.trim()],
      [1, 'issue-card/card_none: Temporal has no such workflow'],
    );
    const noHistory = await replay(['package.json'], today);
    assert.deepEqual(
      [noHistory.code, noHistory.err.trim()],
      [1, 'package.json: is not the history of a workflow as JSON'],
    );
    const unused = await replay([], today);
    assert.equal(unused.code, 2);
    assert.match(unused.err, /^npm run replay -- /);
  });
});
