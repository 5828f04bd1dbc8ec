import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

describe('a smoke test of an issuer', () => {
  for (const [script, variable, baseUrl] of [
    ['smoke-increase', 'INCREASE_BASE_URL', 'https://api.increase.com'],
    ['smoke-increase', 'INCREASE_BASE_URL', 'https://api.increase.com:443'],
    ['smoke-increase', 'INCREASE_BASE_URL', 'https://API.increase.com'],
    ['smoke-lithic', 'LITHIC_BASE_URL', 'https://api.lithic.com'],
    ['smoke-lithic', 'LITHIC_BASE_URL', 'https://API.lithic.com:443'],
  ] as const) {
    it(`${script} does nothing at ${baseUrl}`, () => {
      const { status, stderr } = spawnSync(process.execPath, [`dev/${script}.ts`], {
        cwd: ROOT,
        encoding: 'utf8',
        env: {
          PATH: process.env.PATH,
          INCREASE_API_KEY: 'a-key-of-nobody-whatever-it-says',
          INCREASE_FUNDING_ACCOUNT_ID: 'account_of_nobody',
          LITHIC_API_KEY: 'a-key-of-nobody-whatever-it-says',
          [variable]: baseUrl,
        },
      });
      assert.deepEqual([status, stderr.trim()], [1, `Nothing was done: ${variable} is not the sandbox.`]);
    });
  }
});
