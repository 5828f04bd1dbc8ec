import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createApiKey } from '../../../accounts/api-keys.ts';
import { Scope } from '../../../accounts/scope-rules.ts';
import { openApiDocument } from '../../../api/openapi/document.ts';
import { DECLARATIONS } from '../../../api/routes.ts';
import { findProgram } from '../../support/find-program.ts';
import { sharedStack } from '../../support/shared-stack.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

interface Operation {
  operationId: string;
  responses: Record<string, { description: string }>;
  'x-codeSamples': { label: string; source: string }[];
}

const { paths } = openApiDocument(DECLARATIONS) as { paths: Record<string, Record<string, Operation>> };
const OPERATIONS = Object.values(paths).flatMap((path) => Object.values(path));
const samplesIn = (label: string) =>
  OPERATIONS.map((operation) => ({
    operation,
    source: operation['x-codeSamples'].find((sample) => sample.label === label)?.source ?? '',
  }));

describe('the reference', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'card-issuing-reference-'));
  });
  after(() => rm(folder, { recursive: true }));

  const environment = async (key: string): Promise<Record<string, string>> => {
    const { config } = await sharedStack();
    return {
      PATH: process.env.PATH ?? '',
      CARD_ISSUING_BASE_URL: `http://${config.host}:${config.port}/v1`,
      CARD_ISSUING_API_KEY: key,
    };
  };

  it('has a sample with curl for every operation, which gets a response that the operation declares', async function () {
    if (findProgram({ names: ['curl'], debianPackage: 'curl' }) === undefined) return this.skip();
    const stack = await sharedStack();
    const partner = await stack.createPartner('Reading Partner');
    const wanted = { partnerId: partner.id, mode: 'test', name: null, scopes: Scope.options } as const;
    const env = await environment((await createApiKey(stack.operator, wanted)).key);
    for (const { operation, source } of samplesIn('curl')) {
      const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', `${source} -sS -w '\\n%{http_code}'`], {
        env,
      });
      const [, body = '', status = ''] = /^(.*)\n(\d+)$/s.exec(stdout) ?? [];
      const declared = operation.responses[status];
      assert.ok(declared, `${operation.operationId}: ${status} ${body}`);
      assert.ok(
        !['400', '401', '405', '415', '500', '503'].includes(status),
        `${operation.operationId}: ${body}`,
      );
      // The ids in the samples are nobody's.
      if (status === '404') assert.match(body, /_not_found"/, operation.operationId);
    }
  });

  it('has a sample with our client for every operation, which is valid TypeScript', async () => {
    const files = await Promise.all(
      samplesIn('TypeScript').map(async ({ operation, source }) => {
        const file = join(folder, `${operation.operationId}.mts`);
        assert.match(source, new RegExp(`client\\.${operation.operationId}\\(`));
        const client = JSON.stringify(join(ROOT, 'client/index.ts'));
        await writeFile(file, source.replace(`'virtual-card-issuing-client'`, client));
        return file;
      }),
    );
    const flags =
      '--noEmit --strict --allowImportingTsExtensions --module nodenext --target es2024 --lib es2024 --types node';
    const types = ['--typeRoots', join(ROOT, 'node_modules/@types')];
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    await run(process.execPath, [tsc, ...flags.split(' '), ...types, ...files], { cwd: folder }).catch(
      ({ stdout }) => assert.fail(stdout),
    );
  });

  describe('in Python', () => {
    /** Where pip installs what the tests import. */
    let packages: string;
    before(async function () {
      const python = findProgram({ names: ['python3'], debianPackage: 'python3' });
      if (python === undefined) return this.skip();
      packages = join(folder, 'packages');
      const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', packages];
      await run('python3', [...pip, 'requests==2.34.2', 'openapi-python-client==0.29.1']);
    });

    const runPython = async (code: string, env: Record<string, string>) => {
      const { stdout } = await run('python3', ['-c', code], {
        cwd: folder,
        env: { ...env, PYTHONPATH: packages },
      });
      return stdout;
    };

    it('has a sample for every operation, which gets a response that the operation declares', async () => {
      const partner = await (await sharedStack()).createPartner('Reading Python Partner');
      const sources = samplesIn('Python').map(({ operation, source }) => ({
        operation,
        source: source.replace('response.raise_for_status()', 'print(response.status_code); continue'),
      }));
      // One process for all samples: each is a block of its own.
      const code = sources.map(({ source }) => `for _ in [0]:\n${source.replace(/^/gm, '    ')}\n`).join('');
      const statuses = (await runPython(code, await environment(partner.keys.test))).trim().split('\n');
      assert.equal(statuses.length, sources.length);
      for (const [index, { operation }] of sources.entries()) {
        const status = statuses[index] ?? '';
        assert.ok(operation.responses[status], `${operation.operationId}: ${status}`);
        assert.ok(!['400', '401', '405', '415', '500', '503'].includes(status), operation.operationId);
      }
    });

    it('has a document from which openapi-python-client generates a client that works', async () => {
      const partner = await (await sharedStack()).createPartner('Generated Python Partner');
      const env = await environment(partner.keys.test);
      const generate = `generate --path ${join(ROOT, 'docs/openapi.json')} --output-path generated_client --meta none`;
      await run('python3', ['-m', 'openapi_python_client', ...generate.split(' ')], {
        cwd: folder,
        env: { ...env, PYTHONPATH: packages },
      });
      const printed = await runPython(USE_GENERATED_CLIENT, env);
      assert.deepEqual(printed.trim().split('\n'), [
        '20000',
        'active 5000',
        'same card',
        "['card_1', 'card_2']",
        'insufficient_funds',
      ]);
    });
  });
});

const USE_GENERATED_CLIENT = `
import os
from generated_client import AuthenticatedClient
from generated_client.api.cards import cards_create, cards_list
from generated_client.api.test_helpers import test_helpers_credit_balance
from generated_client.models import CreateCardRequest, CreditBalanceRequest

client = AuthenticatedClient(
    base_url=os.environ["CARD_ISSUING_BASE_URL"], token=os.environ["CARD_ISSUING_API_KEY"]
)
balance = test_helpers_credit_balance.sync(
    client=client, body=CreditBalanceRequest(amount=20000), idempotency_key="credit"
)
print(balance.total)

def create(ref, amount):
    body = CreateCardRequest(amount=amount, external_ref=ref)
    return cards_create.sync(client=client, body=body, idempotency_key=ref)

card = create("card_1", 5000)
print(card.status.value, card.balance)
print("same card" if create("card_1", 5000).id == card.id else "another card")
create("card_2", 1000)
page = cards_list.sync(client=client, limit=10)
print(sorted(card.external_ref for card in page.data))
print(create("card_3", 900000).error.code)
`;
