import assert from 'node:assert/strict';
import { ConfigurationError } from '../../../config/environment.ts';
import { readApiConfig } from '../../../config/service.ts';

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const NEEDED = {
  DATABASE_URL: 'postgres://127.0.0.1/db',
  TEMPORAL_ADDRESS: '127.0.0.1:7233',
  ENCRYPTION_KEYS: `k1:${Buffer.alloc(32).toString('base64')}`,
  CARD_NETWORK: 'lithic',
};
const LITHIC = { LITHIC_API_KEY: 'key', LITHIC_WEBHOOK_SECRET: SECRET, LITHIC_ASA_SECRET: SECRET };

function problemsOf(env: NodeJS.ProcessEnv): string {
  try {
    readApiConfig({ ...NEEDED, ...env });
    return '';
  } catch (error) {
    assert.ok(error instanceof ConfigurationError);
    return error.message;
  }
}

describe("Lithic's configuration", () => {
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

  it('is not read with another network', () => {
    assert.equal(readApiConfig({ ...NEEDED, ...LITHIC, CARD_NETWORK: 'none' }).lithic, null);
  });

  it('names each variable that is missing', () => {
    const problems = problemsOf({});
    for (const name of Object.keys(LITHIC)) {
      assert.match(problems, new RegExp(`${name}: is required with CARD_NETWORK=lithic`));
    }
  });

  it('refuses secrets that no key can be read from, since anybody could sign with an empty one', () => {
    for (const secret of ['whsec_', 'whsec_!', 'not base64!', 'whsec_ab']) {
      assert.match(problemsOf({ ...LITHIC, LITHIC_ASA_SECRET: secret }), /LITHIC_ASA_SECRET: must be whsec_/);
    }
    assert.equal(problemsOf({ ...LITHIC, LITHIC_ASA_SECRET: SECRET.slice('whsec_'.length) }), '');
  });
});
