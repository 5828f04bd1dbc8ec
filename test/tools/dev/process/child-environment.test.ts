import assert from 'node:assert/strict';
import { childEnvironment } from '../../../../dev/process/child.ts';

describe('the environment of a child process', () => {
  const before = { ...process.env };
  afterEach(() => {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  });

  it('has what any program needs and what is meant for it, and nothing else', () => {
    Object.assign(process.env, {
      ...{ LC_TIME: 'C', https_proxy: 'http://proxy', NODE_OPTIONS: '', XDG_RUNTIME_DIR: '/run/x' },
      ...{
        AWS_SECRET_ACCESS_KEY: 'x',
        PGPASSWORD: 'x',
        TEMPORAL_API_KEY: 'x',
        ENCRYPTION_KEYS: 'x',
        MYPATH: 'x',
      },
      ...{ GOPROXY: 'https://modules', DATABASE_URL: 'postgres://x', npm_config_key: 'x' },
    });
    const ordinary = childEnvironment();
    assert.equal(ordinary.PATH, process.env.PATH);
    assert.deepEqual(
      [ordinary.LC_TIME, ordinary.https_proxy, ordinary.XDG_RUNTIME_DIR],
      ['C', 'http://proxy', '/run/x'],
    );
    for (const name of [
      'AWS_SECRET_ACCESS_KEY',
      'PGPASSWORD',
      'TEMPORAL_API_KEY',
      'ENCRYPTION_KEYS',
      'MYPATH',
    ]) {
      assert.ok(!(name in ordinary), name);
    }
    assert.ok(!('NODE_OPTIONS' in ordinary) && !('npm_config_key' in ordinary) && !('GOPROXY' in ordinary));
    assert.equal(childEnvironment((name) => name === 'DATABASE_URL').DATABASE_URL, 'postgres://x');
  });
});
