import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dataFolder } from '../../../../dev/stack/data-folder.ts';
import { serviceEnvironment } from '../../../../dev/stack/service-environment.ts';
import { readSettings } from '../../../../dev/stack/settings.ts';
import { IN_FILES } from '../../../../platform/config/environment.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';

describe('the environment of the services that npm start runs', () => {
  const scratch = scratchFolder();
  const before = { ...process.env };
  afterEach(() => {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  });

  const environmentWith = (asked: NodeJS.ProcessEnv) => {
    Object.assign(process.env, asked);
    const settings = readSettings(asked);
    const environment = serviceEnvironment({
      folder: dataFolder(join(scratch.path, 'data')),
      settings,
      databaseUrl: 'postgres://api@127.0.0.1/own',
      temporalAddress: '127.0.0.1:7233',
      encryptionKeys: settings.ENCRYPTION_KEYS ?? 'local:own',
      codecKeys: undefined,
      workerPort: 1,
      tron: undefined,
      issuer: undefined,
    });
    return { settings, environment };
  };

  it('has the files of secrets, but not of what the stack itself sets', () => {
    const key = `k1:${Buffer.alloc(32, 1).toString('base64')}`;
    const values: Record<string, string> = {
      ...{ ENCRYPTION_KEYS: key, CODEC_KEYS: key, CODEC_TOKENS: 't'.repeat(32) },
      DATABASE_URL: 'postgres://owner@127.0.0.1/asked',
    };
    const asked: Record<string, string> = {};
    for (const name of IN_FILES) {
      if (/^(TRON|LITHIC)_|^DATABASE_DIRECT|^READ_/.test(name)) continue;
      const file = join(scratch.path, name);
      writeFileSync(file, `${values[name] ?? 'a=secret-of-24-characters'}\n`);
      asked[`${name}_FILE`] = file;
    }
    const { settings, environment } = environmentWith({
      ...asked,
      TEMPORAL_ADDRESS: '127.0.0.1:7233',
      CARD_NETWORK: 'increase',
      INCREASE_FUNDING_ACCOUNT_ID: 'account_1',
    });
    const handedOn = Object.keys(environment).filter((name) => name in asked);
    assert.deepEqual(handedOn.sort(), [
      'CODEC_TOKENS_FILE',
      'INCREASE_API_KEY_FILE',
      'INCREASE_WEBHOOK_SECRET_FILE',
      'OTEL_EXPORTER_OTLP_HEADERS_FILE',
      'TEMPORAL_API_KEY_FILE',
    ]);
    assert.equal(environment.ENCRYPTION_KEYS, key);
    assert.equal(settings.TEMPORAL_API_KEY, 'a=secret-of-24-characters');
  });

  it("has no key of somebody else's Temporal server if the stack starts one", () => {
    const file = join(scratch.path, 'key');
    writeFileSync(file, 'secret');
    const { environment } = environmentWith({ TEMPORAL_API_KEY_FILE: file });
    assert.equal(environment.TEMPORAL_API_KEY_FILE, undefined);
  });
});
