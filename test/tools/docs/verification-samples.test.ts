import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { generateWebhookSecret, signEvent } from '../../../webhooks/secrets.ts';

const SAMPLES = new URL('../../../docs/samples/', import.meta.url);
const GUIDE = readFileSync(new URL('../../../docs/partners/verifying-webhooks.md', import.meta.url), 'utf8');
const PYTHON = spawnSync('python3', ['--version']).status === 0;

const NOW_MS = 1_795_246_916_693;
const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd';
const BODY = '{"id":"evt_1", "data":{"amount":100,"name":"Ødegård"}}';

interface Received {
  body: string;
  headers: Record<string, string>;
  secrets: string[];
  nowMs: number;
}

const sent = (changes: Partial<Received> = {}): Received => ({
  body: BODY,
  headers: signEvent({
    eventId: 'evt_1',
    body: BODY,
    secrets: [SECRET],
    standardWebhooks: false,
    nowMs: NOW_MS,
  }),
  secrets: [SECRET],
  nowMs: NOW_MS,
  ...changes,
});
const withHeader = (name: string, value: string | undefined) => {
  const { [`X-Service-${name}`]: _, ...others } = sent().headers;
  return sent({ headers: value === undefined ? others : { ...others, [`X-Service-${name}`]: value } });
};
const signature = sent().headers['X-Service-Signature'] ?? '';
/** Signed rightly, whatever the timestamp is. */
const signedAt = (timestamp: string) => {
  const digest = createHash('sha256')
    .update(timestamp + BODY + SECRET)
    .digest('hex');
  return sent({ headers: { 'X-Service-Timestamp': timestamp, 'X-Service-Signature': digest } });
};
const other = generateWebhookSecret();

const CASES: [what: string, received: Received, genuine: boolean][] = [
  ['what the service sends', sent(), true],
  ['either secret while they are rotated', sent({ secrets: [other, SECRET] }), true],
  ['a clock that is five minutes ahead', sent({ nowMs: NOW_MS + 300_000 }), true],
  ['a clock that is five minutes behind', sent({ nowMs: NOW_MS - 300_000 }), true],
  ['a webhook that is replayed later', sent({ nowMs: NOW_MS + 300_001 }), false],
  ['a timestamp in the future', sent({ nowMs: NOW_MS - 300_001 }), false],
  ['another body', sent({ body: BODY.replace('100', '999') }), false],
  ['a body that was parsed and serialised again', sent({ body: JSON.stringify(JSON.parse(BODY)) }), false],
  ['no body', sent({ body: '' }), false],
  ['another secret', sent({ secrets: [other] }), false],
  ['another timestamp', withHeader('Timestamp', String(NOW_MS + 1)), false],
  ['no timestamp', withHeader('Timestamp', undefined), false],
  ['an empty timestamp', signedAt(''), false],
  ['a timestamp that is not a number', signedAt('now'), false],
  ['a timestamp with a sign', signedAt(`+${NOW_MS}`), false],
  ['a timestamp in other digits', signedAt('١٧٩٥٢٤٦٩١٦٦٩٣'), false],
  ['a timestamp in seconds', signedAt('1795246916'), false],
  ['no signature', withHeader('Signature', undefined), false],
  ['an empty signature', withHeader('Signature', ''), false],
  ['half a signature', withHeader('Signature', signature.slice(0, 32)), false],
  ['a longer signature', withHeader('Signature', `${signature}0`), false],
  ['a signature in upper case', withHeader('Signature', signature.toUpperCase()), false],
  ['a signature that is not ASCII', withHeader('Signature', 'é'.repeat(32)), false],
];

/** Without a secret anybody could sign, so a receiver without one must not look as if it worked. */
const WITHOUT_SECRET = [[], [''], [SECRET, ''], ['whsec_'], [SECRET.slice(6)], [`${SECRET}\n`]];

type Verify = (body: Buffer, headers: Record<string, string>, secrets: string[], nowMs?: number) => boolean;

const inLowerCase = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

describe('the verification sample for Node', () => {
  let verify: Verify;
  before(async () => {
    ({ verifyWebhook: verify } = await import(new URL('verify-webhook.mjs', SAMPLES).href));
  });

  for (const [what, { body, headers, secrets, nowMs }, genuine] of CASES) {
    it(`${genuine ? 'accepts' : 'refuses'} ${what}`, () =>
      assert.equal(verify(Buffer.from(body), inLowerCase(headers), secrets, nowMs), genuine));
  }

  it('throws if a secret is missing or is not whole', () => {
    const { body, headers, nowMs } = sent();
    for (const secrets of WITHOUT_SECRET) {
      assert.throws(() => verify(Buffer.from(body), inLowerCase(headers), secrets, nowMs), /whsec_…/);
    }
  });

  it('is in the partner guide word for word', () => assertInGuide('verify-webhook.mjs', 'js'));
});

describe(`the verification sample for Python${PYTHON ? '' : ' (no python3 on this machine: not run here)'}`, () => {
  it('is in the partner guide word for word', () => assertInGuide('verify_webhook.py', 'python'));

  if (PYTHON) {
    it('accepts and refuses what the sample for Node does', () => {
      const told = verifyInPython(
        CASES.map(([, received]) => received),
        'verify(case["body"].encode(), case["headers"], case["secrets"], case["nowMs"])',
      );
      assert.deepEqual(
        CASES.map(([what], index) => [what, told[index]]),
        CASES.map(([what, , genuine]) => [what, genuine]),
      );
    });

    it('raises an error if a secret is missing or is not whole', () => {
      const told = verifyInPython([...WITHOUT_SECRET, [null], null], 'verify(b"", {}, case)');
      assert.deepEqual([...new Set(told)], ['whsec_ is missing']);
    });
  }
});

/** What an expression in Python makes of each case, or that it raises an error about the secret. */
function verifyInPython(cases: unknown[], expression: string): unknown[] {
  const program = `
import json, sys
sys.path.insert(0, sys.argv[1])
from verify_webhook import verify_webhook as verify
def outcome(case):
    try: return ${expression}
    except ValueError as error: return "whsec_" in str(error) and "whsec_ is missing"
print(json.dumps([outcome(case) for case in json.load(sys.stdin)]))`;
  const options = { input: JSON.stringify(cases), encoding: 'utf8' } as const;
  const run = spawnSync('python3', ['-B', '-c', program, SAMPLES.pathname], options);
  assert.equal(run.status, 0, run.stderr);
  return JSON.parse(run.stdout);
}

function assertInGuide(file: string, language: string): void {
  const sample = readFileSync(new URL(file, SAMPLES), 'utf8');
  assert.ok(
    GUIDE.includes(`\`\`\`${language}\n${sample}\`\`\``),
    `docs/partners/verifying-webhooks.md shows another text than docs/samples/${file}; copy the file into it`,
  );
}
