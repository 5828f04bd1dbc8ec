import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { problemsOf } from '../../../support/config-problems.ts';

const SECRET = Buffer.alloc(32, 7);
const KEY = `k1:${SECRET.toString('base64')}`;
// Of the mnemonic test … junk, m/44'/195'/0'.
const XPUB =
  'xpub6BuRy7ZmkGfP2RWhoor1kWB1w9DvrtmJbFBvnC1bQ4SB5NbCHTyQYCJSXZtxDbFyHTmC7wkU2he3nYYdpZ3Vf6qUAkXSnL6RPif4BDtDEKr';
const NEEDED = {
  DATABASE_URL: 'postgres://user:pass@db:5432/cards?sslmode=verify-full',
  TEMPORAL_ADDRESS: 'temporal:7233',
  TEMPORAL_TLS: 'true',
  ENCRYPTION_KEYS: KEY,
};

describe('an invalid configuration', () => {
  it('is reported with every problem at once', () => {
    const wrong = {
      PORT: '0',
      DATABASE_URL: 'mysql://db',
      TEMPORAL_TLS: 'yes',
      TASK_QUEUE_PREFIX: 'a b',
      CARD_NETWORK: 'visa',
      PRODUCT_BIN: '12',
      CARD_CREATION_WAIT_MS: '1e3',
      ISSUANCE_DEADLINE: '1 day',
      RATE_LIMIT_PER_SECOND: '-1',
      RATE_LIMIT_BURST: '1.5',
      LOG_LEVEL: 'loud',
      CARD_NETWROK: 'x',
      WEBHOOK_TIMOUT: '1s',
    };
    const missing = ['TEMPORAL_ADDRESS', 'ENCRYPTION_KEYS', 'PRODUCT_CODE, PRODUCT_BIN, PRODUCT_NETWORK'];
    const names = problemsOf(wrong).map((problem) => problem.split(':')[0]);
    assert.deepEqual(names.sort(), [...Object.keys(wrong), ...missing].sort());
  });

  it('is reported with what each value must be', () => {
    const whole = 'must be a whole number from 1 to';
    const blocks = 'must be CIDR blocks such as 10.0.0.0/8 or 2001:db8::/32, comma-separated';
    const timeout =
      "must be a duration from 1ms to 20s, since an attempt takes up one of its endpoint's slots for that long";
    for (const [name, values, problem] of [
      ['PORT', ['65536', '+1'], `${whole} 65535`],
      ['CARD_CREATION_WAIT_MS', ['0'], `${whole} 60000`],
      ['ISSUANCE_DEADLINE', ['5'], 'must be a duration: 250ms, 30s, 5m or 8h'],
      ['WEBHOOK_TIMEOUT', ['0s', '21s', '5m'], timeout],
      ['TRUSTED_PROXIES', ['10.0.0.1', '10/8', '010.0.0.0/8', '10.0.0.0/33', '10.0.0.0/8,'], blocks],
      ['TRUSTED_PROXIES', ['::ffff:10.0.0.0/104'], blocks],
      ['TRUSTED_PROXIES', ['::/0'], 'must not trust every address'],
      ['OTEL_EXPORTER_OTLP_HEADERS', ['authorization=Bearer%zz'], 'must have percent-encoded values'],
    ] as const) {
      for (const value of values)
        assert.deepEqual(problemsOf({ ...NEEDED, [name]: value }), [`${name}: ${problem}`], value);
    }
    assert.deepEqual(problemsOf({ ...NEEDED, WEBHOOK_TIMEOUT: '20s' }), []);
  });

  it('includes a variable that begins like ours, or is a slip away from one that is not set', () => {
    const hint = 'If another program needs it, add its name to IGNORED_VARIABLES';
    const { DATABASE_URL, ...noDatabase } = NEEDED;
    for (const [name, near] of [
      ['PROT', 'PORT'],
      ['LOGLEVEL', 'LOG_LEVEL'],
      ['log_level', 'LOG_LEVEL'],
      ['TEMPORAL_NAMSPACES', 'TEMPORAL_NAMESPACE'],
      ['CARD_NETWROK', 'CARD_NETWORK'],
      ['OTEL_EXPORTER_OLTP_ENDPONT', 'OTEL_EXPORTER_OTLP_ENDPOINT'],
      ['TRON_XPUB_FIL', 'TRON_XPUB_FILE'],
    ] as const) {
      assert.deepEqual(problemsOf({ ...NEEDED, [name]: 'secret' }), [
        `${name}: is not a known variable; did you mean ${near}? ${hint}`,
      ]);
    }
    for (const name of ['DATABSE_URL', 'DATABASE_URI', 'Database_Url']) {
      assert.deepEqual(problemsOf({ ...noDatabase, [name]: DATABASE_URL }), [
        'DATABASE_URL: is required',
        `${name}: is not a known variable; did you mean DATABASE_URL? ${hint}`,
      ]);
    }
    for (const name of ['TRON_NODES', 'TRUSTED_PROXY']) {
      assert.deepEqual(problemsOf({ ...NEEDED, [name]: 'x' }), [
        `${name}: is not a known variable; is it misspelt? ${hint}`,
      ]);
    }
  });

  it("does not include other programs' variables, nor those that IGNORED_VARIABLES names", () => {
    const others =
      'HOME PATH LANG LC_ALL TERM SHELL USER LOGNAME HOSTNAME HOSTTYPE HOSTS POST PORTS SORT host port EDITOR ' +
      'XDG_DATA_DIRS TMPDIR http_proxy NO_PROXY NODE_ENV NODE_OPTIONS npm_config_cache PGHOST PGPORT ' +
      'KUBERNETES_PORT KUBERNETES_SERVICE_HOST DB_PORT API_HOST DOCKER_HOST SSH_TTY TEMPORAL_PROFILE ' +
      'TEMPORAL_TLS_SERVER_NAME TEMPORAL_TLS_CLIENT_CERT_DATA OTEL_SERVICE_NAME OTEL_TRACES_SAMPLER AWS_REGION ' +
      'CI DEBUG OLDPWD _ GIT_EDITOR LS_COLORS';
    const set = Object.fromEntries(
      others.split(' ').map((name) => [name, name.startsWith('TEMPORAL_') ? '' : 'x']),
    );
    assert.deepEqual(problemsOf({ ...NEEDED, ...set }), []);
    assert.deepEqual(problemsOf({ ...NEEDED, PORT: '3000', PROT: 'x', DATABASE_URI: 'x' }), []);
    const ignored = { PROT: 'x', TRON_NODES: 'x', IGNORED_VARIABLES: 'PROT, TRON_NODES,LOGLEVEL' };
    assert.deepEqual(problemsOf({ ...NEEDED, ...ignored }), []);
    assert.deepEqual(problemsOf({ ...NEEDED, IGNORED_VARIABLES: 'a b' }), [
      'IGNORED_VARIABLES: must be names of variables, comma-separated',
    ]);
  });

  it('is reported without its values, because some are secret', () => {
    const secret = 'hunter2-hunter2';
    const all =
      'PORT ISSUANCE_DEADLINE CARD_NETWORK TRON_KEY PRODUCT_BIN TEMPORAL_TLS LOG_LEVEL RATE_LIMIT_BURST';
    const problems = problemsOf({
      ...Object.fromEntries(all.split(' ').map((name) => [name, secret])),
      DATABASE_URL: `mysql://u:${secret}@db`,
      ENCRYPTION_KEYS: `k:${secret}`,
      TASK_QUEUE_PREFIX: `${secret} x`,
    });
    assert.ok(problems.length >= 11);
    assert.ok(!problems.join('\n').includes(secret));
  });

  it('is reported for every variable of deposits', () => {
    const contract = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
    const wrong = {
      TRON_NETWORK: ['main', 'MAINNET', 'mainnet,nile'],
      TRON_NODE_URLS: [
        'tron:8090',
        'ftp://node',
        'http://a,',
        'http://a|http://b|http://c',
        'http://me:key@node',
        'http://one:8090|http://one:8091, HTTP://ONE:8090/',
      ],
      TRON_API_KEY: ['a b', 'ключ'],
      TRON_USDT_CONTRACT: [contract.slice(1), contract.toLowerCase(), `${contract.slice(0, -1)}u`],
      // The others are in test/unit/platform/crypto/tron-address.test.ts.
      TRON_XPUB: ['xpub', 'xprv9s21ZrQH143K'],
      DEPOSIT_ADDRESS_TTL: ['8', '0h', '-1h', '721h'],
      TRON_SCAN_INTERVAL: ['3', '0s', 'often', '61s'],
    };
    for (const [name, values] of Object.entries(wrong)) {
      for (const value of values) {
        const problems = problemsOf({ ...NEEDED, TRON_XPUB: XPUB, [name]: value });
        assert.deepEqual(
          problems.map((problem) => problem.split(':')[0]),
          [name],
          `${name}=${value}`,
        );
        assert.ok(value.length < 5 || !problems.join().includes(value), name);
      }
    }
    const right = {
      ...{ TRON_NETWORK: 'private', TRON_USDT_CONTRACT: contract, TRON_XPUB: XPUB, TRON_API_KEY: 'a-b' },
      ...{ TRON_NODE_URLS: 'https://one.example/tron, http://two:8090|http://two:8091' },
      ...{ DEPOSIT_ADDRESS_TTL: '30m', TRON_SCAN_INTERVAL: '250ms' },
    };
    assert.deepEqual(problemsOf({ ...NEEDED, ...right }), []);
    assert.deepEqual(problemsOf({ ...NEEDED, TRON_NETWORK: 'private' }), [
      'TRON_XPUB: is required with TRON_NETWORK',
      'TRON_USDT_CONTRACT: is required with TRON_NETWORK=private',
      'TRON_NODE_URLS: is required with TRON_NETWORK=private',
    ]);
    assert.match(problemsOf({ ...NEEDED, TRON_XPUB: 'xprv9s21ZrQH143K' })[0] ?? '', /private key/);
  });

  it('refuses more confirming nodes than there are, or none', () => {
    const problems = (set: Record<string, string>) =>
      problemsOf({ ...NEEDED, TRON_NETWORK: 'nile', TRON_XPUB: XPUB, ...set });
    assert.deepEqual(problems({ TRON_CONFIRMING_NODES: '2' }), [
      'TRON_CONFIRMING_NODES: is 2, but TRON_NODE_URLS has one node',
    ]);
    const TRON_NODE_URLS = 'http://a,http://b';
    assert.deepEqual(problems({ TRON_NODE_URLS, TRON_CONFIRMING_NODES: '2' }), []);
    assert.deepEqual(problems({ TRON_NODE_URLS, TRON_CONFIRMING_NODES: '3' }), [
      'TRON_CONFIRMING_NODES: is 3, but TRON_NODE_URLS has 2 nodes',
    ]);
    for (const TRON_CONFIRMING_NODES of ['0', '-1', '1.5', 'all'])
      assert.deepEqual(problems({ TRON_NODE_URLS, TRON_CONFIRMING_NODES }), [
        'TRON_CONFIRMING_NODES: must be a whole number from 1',
      ]);
  });

  it('includes a contract or a node of another TRON network', () => {
    const [mainnet, nile] = ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf'];
    const own = 'TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6';
    const problems = (set: Record<string, string>) => problemsOf({ ...NEEDED, TRON_XPUB: XPUB, ...set });
    for (const TRON_USDT_CONTRACT of [nile, own]) {
      assert.deepEqual(problems({ TRON_NETWORK: 'mainnet', TRON_USDT_CONTRACT }), [
        'TRON_USDT_CONTRACT: is not the USDT contract on mainnet; leave it out to use the right one',
      ]);
    }
    for (const network of ['nile', 'shasta']) {
      assert.deepEqual(problems({ TRON_NETWORK: network, TRON_USDT_CONTRACT: mainnet }), [
        `TRON_USDT_CONTRACT: belongs to mainnet, but TRON_NETWORK is ${network}`,
      ]);
    }
    assert.deepEqual(problems({ TRON_NETWORK: 'mainnet', TRON_NODE_URLS: 'https://nile.trongrid.io' }), [
      'TRON_NODE_URLS: contains a node of nile, but TRON_NETWORK is mainnet',
    ]);
    for (const set of [
      { TRON_NETWORK: 'mainnet', TRON_USDT_CONTRACT: mainnet, TRON_NODE_URLS: 'https://api.trongrid.io' },
      { TRON_NETWORK: 'nile', TRON_USDT_CONTRACT: nile, TRON_NODE_URLS: 'https://nile.trongrid.io' },
      { TRON_NETWORK: 'shasta', TRON_USDT_CONTRACT: own, TRON_NODE_URLS: 'https://api.shasta.trongrid.io' },
    ])
      assert.deepEqual(problems(set), [], JSON.stringify(set));
  });

  it("is reported with the file of Temporal's configuration that cannot be read", () => {
    const [problem] = problemsOf({ ...NEEDED, TEMPORAL_TLS_CLIENT_CERT_PATH: '/nowhere/cert.pem' });
    assert.match(problem ?? '', /TEMPORAL_TLS_….*\/nowhere\/cert\.pem/);
  });

  it('is reported with the file of a secret that cannot be read or is given twice, never its contents', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'config-')), 'secret');
    writeFileSync(file, 'not-a-key\n');
    assert.deepEqual(problemsOf({ ...NEEDED, ENCRYPTION_KEYS_FILE: file }), [
      'ENCRYPTION_KEYS, ENCRYPTION_KEYS_FILE: set only one of the two',
    ]);
    const { ENCRYPTION_KEYS: _, ...others } = NEEDED;
    assert.deepEqual(problemsOf({ ...others, ENCRYPTION_KEYS_FILE: file }), [
      'ENCRYPTION_KEYS: must be id:base64(32 bytes), comma-separated, the current key first',
    ]);
    assert.deepEqual(problemsOf({ ...others, ENCRYPTION_KEYS_FILE: `${file}-missing` }), [
      "ENCRYPTION_KEYS_FILE: can't be read (ENOENT)",
      'ENCRYPTION_KEYS: is required',
    ]);
  });

  it('is reported with the command for the keys that fails, prints nothing or is beside the keys, never its output', () => {
    const { ENCRYPTION_KEYS: _, ...others } = NEEDED;
    assert.deepEqual(problemsOf({ ...NEEDED, ENCRYPTION_KEYS_COMMAND: 'true' }), [
      'ENCRYPTION_KEYS, ENCRYPTION_KEYS_FILE, ENCRYPTION_KEYS_COMMAND: set only one of the three',
    ]);
    for (const [command, problem] of [
      ['echo secret; exit 3', 'COMMAND: failed (exit code 3); run it by hand to see why'],
      ['true', 'COMMAND: printed nothing; it has to print id:base64(32 bytes), comma-separated'],
      ['head -c 100000 /dev/zero', 'COMMAND: failed (ENOBUFS); run it by hand to see why'],
    ] as const) {
      const problems = problemsOf({ ...others, ENCRYPTION_KEYS_COMMAND: command });
      assert.ok(problems.includes(`ENCRYPTION_KEYS_${problem}`), problems.join());
      assert.ok(!problems.join().includes('secret'));
    }
    assert.deepEqual(problemsOf({ ...others, ENCRYPTION_KEYS_COMMAND: 'echo not-a-key' }), [
      'ENCRYPTION_KEYS: must be id:base64(32 bytes), comma-separated, the current key first',
    ]);
    assert.deepEqual(problemsOf({ ...others, ENCRYPTION_KEYS_COMMAND: `echo '${KEY}'` }), []);
  });
});
