import assert from 'node:assert/strict';
import { Webhook } from 'standardwebhooks';
import { signStandardWebhook, verifyStandardWebhook } from '../../../issuers/standard-webhooks.ts';

const KEY = Buffer.from('a secret that is not base64');
const BODY = Buffer.from('{"id":"event_1"}');

function post({ ageSeconds = 0, key = KEY, signature = '' } = {}) {
  const id = 'event_1';
  const timestamp = String(Math.floor(Date.now() / 1_000) - ageSeconds);
  const own = signStandardWebhook({ id, timestamp }, BODY, key);
  return {
    body: BODY,
    headers: {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signature === '' ? own : `${signature} ${own}`,
    },
  };
}

describe('a Standard Webhooks signature', () => {
  it('is accepted if it matches the id, the timestamp and the raw body', () => {
    assert.equal(verifyStandardWebhook(post(), [KEY]), true);
  });

  it('is what the own library of Standard Webhooks makes', () => {
    const library = new Webhook(`whsec_${KEY.toString('base64')}`);
    const at = new Date();
    const signature = library.sign('event_1', at, BODY.toString());
    const timestamp = String(Math.floor(at.getTime() / 1_000));
    assert.equal(signature, signStandardWebhook({ id: 'event_1', timestamp }, BODY, KEY));
  });

  it('is refused under another key, and accepted if one of several keys is right', () => {
    const other = Buffer.from('another secret');
    assert.equal(verifyStandardWebhook(post(), [other]), false);
    assert.equal(verifyStandardWebhook(post(), [other, KEY]), true);
  });

  it('may be one of several, in any place', () => {
    const wrong = signStandardWebhook({ id: 'event_1', timestamp: '1' }, BODY, KEY);
    assert.equal(verifyStandardWebhook(post({ signature: `v1a,x ${wrong}` }), [KEY]), true);
  });

  for (const header of ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const) {
    it(`is refused without ${header}, and with a changed one`, () => {
      const { headers } = post();
      const changed = {
        'webhook-id': 'event_2',
        'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1),
        'webhook-signature': `x${headers['webhook-signature']}`,
      };
      for (const value of [undefined, changed[header]]) {
        const received = { body: BODY, headers: { ...headers, [header]: value } };
        assert.equal(verifyStandardWebhook(received, [KEY]), false);
      }
    });
  }

  it('is refused for another body', () => {
    assert.equal(verifyStandardWebhook({ ...post(), body: Buffer.from('{"id":"event_2"}') }, [KEY]), false);
  });

  it('is refused if it is more than five minutes old, or from the future', () => {
    for (const [ageSeconds, expected] of [
      [290, true],
      [310, false],
      [-290, true],
      [-310, false],
    ] as const) {
      assert.equal(verifyStandardWebhook(post({ ageSeconds }), [KEY]), expected, String(ageSeconds));
    }
  });
});
