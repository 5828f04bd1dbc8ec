import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { text } from 'node:stream/consumers';

const PASSES = `describe('a file', () => { it('that passes', () => {}); });`;
const FAILS = `describe('one that fails', () => {
  it('at first', () => { throw new Error('seen from outside', { cause: new Error('the cause') }); });
  it('not here', () => {});
});`;
const FAILS_ONCE = `import { existsSync, writeFileSync } from 'node:fs';
it('passes the second time', () => {
  const marker = import.meta.filename + '.ran';
  if (existsSync(marker)) return;
  writeFileSync(marker, '');
  throw new Error('a busy neighbour');
});`;
const FAILS_IN_A_HOOK = `describe('a hook', () => {
  before(() => { throw new Error('before all of it'); });
  it('never comes to this', () => {});
});`;
const TAKES_TOO_LONG = `it('never ends', () => new Promise(() => {})).timeout(20);`;
const IS_NOT_LOADED = `throw new Error('not loaded');`;
const IS_EMPTY = '';
const DIES = `it('dies', () => process.kill(process.pid, 'SIGKILL'));`;

describe('test/run.ts', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'card-issuing-run-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** @returns its exit code, and its last lines from the first `Failed` on */
  async function run(files: Record<string, string>): Promise<[unknown, string[]]> {
    const paths: string[] = [];
    for (const [name, source] of Object.entries(files)) {
      paths.push(join(folder, `${name}.mjs`));
      await writeFile(join(folder, `${name}.mjs`), source);
    }
    const runner = spawn(process.execPath, ['test/run.ts', '--unit', ...paths], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [output, [code]] = await Promise.all([text(runner.stdout), once(runner, 'exit')]);
    const lines = output
      .replaceAll(`${relative('.', folder)}/`, '')
      .trimEnd()
      .split('\n');
    const first = lines.findIndex((line) => line.startsWith('Failed'));
    return [code, lines.slice(first === -1 ? -1 : first)];
  }

  it('reports at its end how many tests have passed', async () => {
    assert.deepEqual(await run({ passes: PASSES }), [0, ['1 passed, 0 failed']]);
  });

  it('runs a failed file once more, by itself, and says so if it then passes', async () => {
    assert.deepEqual(await run({ passes: PASSES, once: FAILS_ONCE }), [
      0,
      [
        'Failed beside others, passed alone. Each is a defect to look at (docs/CONTRIBUTING.md):',
        '  once.mjs',
        '    passes the second time',
        '      Error: a busy neighbour',
        '2 passed, 0 failed',
      ],
    ]);
  });

  it('fails for a failed test, hook or time limit, and for a file that cannot be loaded, runs nothing or dies', async () => {
    const [code, lines] = await run({
      ...{ passes: PASSES, fails: FAILS, once: FAILS_ONCE, hook: FAILS_IN_A_HOOK },
      ...{ slow: TAKES_TOO_LONG, unloaded: IS_NOT_LOADED, empty: IS_EMPTY, dies: DIES },
    });
    assert.equal(code, 1);
    assert.equal(lines[0], 'Failed:');
    const output = lines.join('\n');
    for (const told of [
      [
        '  fails.mjs',
        '    one that fails › at first',
        '      Error: seen from outside',
        '      caused by Error: the cause',
      ],
      [
        '  hook.mjs',
        '    a hook › "before all" hook for "never comes to this"',
        '      Error: before all of it',
      ],
      ['  slow.mjs', '    never ends', '      Error: Timeout of 100ms exceeded.'],
      ['  unloaded.mjs', '    Uncaught error outside test suite', '      Error: not loaded'],
      ['  empty.mjs', '    empty.mjs', '      none of its tests ran'],
      [
        '  dies.mjs',
        '    Uncaught error outside test suite',
        '      Error: Workerpool Worker terminated Unexpectedly',
      ],
    ]) {
      assert.ok(output.includes(told.join('\n')), output);
    }
    const passedAlone = lines.findIndex((line) => line.startsWith('Failed beside others, passed alone'));
    assert.equal(lines[passedAlone + 1], '  once.mjs');
    assert.equal(lines.at(-1), '3 passed, 6 failed');
  });
});
