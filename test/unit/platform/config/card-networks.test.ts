import assert from 'node:assert/strict';
import { readApiConfig, readWorkerConfig } from '../../../../platform/config/service.ts';
import { problemsOf } from '../../../support/config-problems.ts';

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const INCREASE = {
  CARD_NETWORK: 'increase',
  INCREASE_API_KEY: 'key',
  INCREASE_WEBHOOK_SECRET: 'a-shared-secret-of-ours-1',
  INCREASE_FUNDING_ACCOUNT_ID: 'account_of_funds',
};
const NEEDED = {
  DATABASE_URL: 'postgres://127.0.0.1/db',
  TEMPORAL_ADDRESS: '127.0.0.1:7233',
  ENCRYPTION_KEYS: `k1:${Buffer.alloc(32).toString('base64')}`,
  CARD_NETWORK: 'lithic',
};
const LITHIC = { LITHIC_API_KEY: 'key', LITHIC_WEBHOOK_SECRET: SECRET, LITHIC_ASA_SECRET: SECRET };

const problemsWith = (
  env: Record<string, string>,
  read: (env: NodeJS.ProcessEnv) => unknown = readApiConfig,
) => problemsOf({ ...NEEDED, ...env }, read);

const INCREASE_BY_DEFAULT = {
  apiKey: 'key',
  webhookSecret: 'a-shared-secret-of-ours-1',
  baseUrl: 'https://api.increase.com',
  fundingAccountId: 'account_of_funds',
  programId: null,
  entityId: null,
  asksForDecisions: true,
  requestsPerSecond: 50,
};

describe("an issuer's configuration", () => {
  it("has Lithic's production and five requests a second by default", () => {
    assert.deepEqual(readApiConfig({ ...NEEDED, ...LITHIC }).lithic, {
      apiKey: 'key',
      webhookSecret: SECRET,
      asaSecret: SECRET,
      baseUrl: 'https://api.lithic.com',
      cardProgramToken: null,
      requestsPerSecond: 5,
    });
  });

  it("has Increase's production, decisions by us, and fifty requests a second by default", () => {
    assert.deepEqual(readApiConfig({ ...NEEDED, ...INCREASE }).increase, INCREASE_BY_DEFAULT);
  });

  it('has what is given', () => {
    const { increase } = readApiConfig({
      ...NEEDED,
      ...INCREASE,
      INCREASE_BASE_URL: 'https://sandbox.increase.com/',
      INCREASE_PROGRAM_ID: 'program_1',
      INCREASE_ENTITY_ID: 'entity_1',
      INCREASE_REAL_TIME_DECISIONS: 'false',
      INCREASE_REQUESTS_PER_SECOND: '20',
    });
    assert.deepEqual(increase, {
      ...INCREASE_BY_DEFAULT,
      baseUrl: 'https://sandbox.increase.com',
      programId: 'program_1',
      entityId: 'entity_1',
      asksForDecisions: false,
      requestsPerSecond: 20,
    });
  });

  it('is not read with another network', () => {
    const { increase, lithic } = readApiConfig({ ...NEEDED, ...INCREASE, ...LITHIC, CARD_NETWORK: 'none' });
    assert.deepEqual([increase, lithic], [null, null]);
  });

  it("needs Increase's funding account", () => {
    assert.deepEqual(problemsWith({ ...INCREASE, INCREASE_FUNDING_ACCOUNT_ID: '' }), [
      'INCREASE_FUNDING_ACCOUNT_ID: is required with CARD_NETWORK=increase',
    ]);
  });

  it('refuses secrets that no key of 24 bytes can be read from, since somebody could guess it', () => {
    const short = `whsec_${Buffer.alloc(23, 7).toString('base64')}`;
    for (const secret of ['whsec_', 'whsec_!', 'not base64!', 'whsec_ab', short]) {
      const [problem = ''] = problemsWith({ ...LITHIC, LITHIC_ASA_SECRET: secret });
      assert.match(problem, /^LITHIC_ASA_SECRET: must be whsec_/);
    }
    assert.deepEqual(problemsWith({ ...LITHIC, LITHIC_ASA_SECRET: SECRET.slice('whsec_'.length) }), []);
  });

  it('does not say what a malformed value is, only what is wrong with it', () => {
    const malformed = {
      INCREASE_API_KEY: 'two words',
      INCREASE_WEBHOOK_SECRET: 'schl\u00fcssel',
      INCREASE_FUNDING_ACCOUNT_ID: 'an account',
      INCREASE_REAL_TIME_DECISIONS: 'yes',
      INCREASE_REQUESTS_PER_SECOND: '0',
    };
    for (const [name, value] of Object.entries(malformed)) {
      const [problem = ''] = problemsWith({ ...INCREASE, [name]: value });
      assert.match(problem, new RegExp(`^${name}: must be `));
      assert.ok(name === 'INCREASE_REQUESTS_PER_SECOND' || !problem.includes(value), name);
    }
  });
});

describe('NETWORK_KEY_LIFETIME', () => {
  const forgotten = /^NETWORK_KEY_LIFETIME: must be at most 23h with CARD_NETWORK=lithic/;
  for (const [name, issuer, lifetime, problem] of [
    ['is refused if Lithic has forgotten the key by then', LITHIC, '24h', forgotten],
    ['can be as long as Lithic surely knows the key', LITHIC, '23h', /^$/],
    ['can be longer at Increase, which documents no end', INCREASE, '48h', /^$/],
  ] as const) {
    it(name, () => {
      assert.match(problemsWith({ ...issuer, NETWORK_KEY_LIFETIME: lifetime }).join(), problem);
    });
  }
});

describe("an issuer's secrets", () => {
  const apiWith = (API_PARTS: string) => (env: NodeJS.ProcessEnv) => readApiConfig({ ...env, API_PARTS });
  const key = { increase: ['INCREASE_API_KEY'], lithic: ['LITHIC_API_KEY'] };
  const signatures = {
    increase: ['INCREASE_WEBHOOK_SECRET'],
    lithic: ['LITHIC_WEBHOOK_SECRET', 'LITHIC_ASA_SECRET'],
  };
  const all = {
    increase: [...key.increase, ...signatures.increase],
    lithic: [...key.lithic, ...signatures.lithic],
  };
  // Increase's posts name only what to ask it for.
  const ofPosts = { increase: all.increase, lithic: signatures.lithic };
  for (const [name, read, needed] of [
    ['a worker', readWorkerConfig, key],
    ['an API of partners', apiWith('partner'), key],
    ['an API of reveals', apiWith('reveal'), key],
    ['an API of both', apiWith('partner,reveal'), key],
    ["an API of the network's posts", apiWith('network'), ofPosts],
    ['an API of posts and reveals', apiWith('reveal,network'), all],
    ['an API of posts and partners', apiWith('network,partner'), all],
    ['an API of everything', apiWith('all'), all],
  ] as const) {
    it(`are required and opened where they are used: ${name}`, () => {
      for (const issuer of ['increase', 'lithic'] as const) {
        const missing = { CARD_NETWORK: issuer, INCREASE_FUNDING_ACCOUNT_ID: 'account_of_funds' };
        const required = needed[issuer].map((one) => `${one}: is required with CARD_NETWORK=${issuer}`);
        assert.deepEqual(problemsWith(missing, read), required);
        const files = Object.fromEntries(all[issuer].map((one) => [`${one}_FILE`, '/none']));
        assert.deepEqual(
          problemsWith({ ...missing, ...files }, read).filter((problem) => problem.includes('_FILE')),
          needed[issuer].map((one) => `${one}_FILE: can't be read (ENOENT)`),
        );
      }
    });
  }
});

for (const [name, env] of [
  ['INCREASE_BASE_URL', INCREASE],
  ['LITHIC_BASE_URL', LITHIC],
] as const) {
  describe(`${name}`, () => {
    const malformed = new RegExp(`^${name}: must be an http\\(s\\) URL without a user`);
    for (const [url, problem] of [
      ['http://127.0.0.1:4010', /^$/],
      ['http://localhost:4010', /^$/],
      ['http://[::1]:4010', /^$/],
      ['https://issuer.example', /^$/],
      // Card numbers and the key would pass in clear.
      ['http://issuer.example', new RegExp(`^${name}: leads to another`)],
      ['issuer.example', malformed],
      ['ftp://issuer.example', malformed],
      ['https://user:secret@issuer.example', malformed],
    ] as const) {
      it(`${problem.source === '^$' ? 'can' : 'can not'} be ${url}`, () => {
        const problems = problemsWith({ ...env, [name]: url }).join();
        assert.match(problems, problem);
        assert.ok(!problems.includes('secret'));
      });
    }
  });
}
