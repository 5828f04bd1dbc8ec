import assert from 'node:assert/strict';
import { Webhook } from 'standardwebhooks';
import { webhooks } from '../../../client/webhooks.ts';
import { environmentOf, type Operate, operateIn } from '../../support/operator/operate.ts';
import { asOwner } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

describe('a rotation of a webhook secret while events are sent', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let operate: Operate;
  let receiver: Receiver;
  /** In the order in which they were shown. */
  const secrets: string[] = [];

  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
    partner = await stack.createPartner();
    receiver = await startReceiver();
    const body = { url: receiver.url, standard_webhooks: true };
    secrets.push((await partner.call('PUT', '/webhook-endpoint', { body })).json.secret);
  });
  after(() => receiver.stop());

  async function rotate(): Promise<void> {
    const rotated = await operate('webhook-endpoint', 'rotate-secret', partner.id, '--mode', 'test');
    assert.equal(rotated.code, 0);
    secrets.push(rotated.json.secret);
  }

  /** For the next event: whether each secret verifies `X-Service-Signature`, and whether it does `webhook-signature`. */
  async function verifiedBy(): Promise<{ service: boolean[]; standard: boolean[] }> {
    const { json } = await partner.call('POST', '/webhook-endpoint/test');
    const { headers, body } = await until('it arrives', async () => receiver.attempts(json.id)[0]);
    const sent = headers as Record<string, string>;
    const verifies = (verify: () => unknown) => {
      try {
        return verify() !== false;
      } catch {
        return false;
      }
    };
    const { 'webhook-signature': _, ...own } = sent;
    const service = secrets.map((secret) => verifies(() => webhooks.verify(body, own, secret)));
    // While they change, a receiver knows the old one and the new one.
    assert.ok(verifies(() => webhooks.verify(body, sent, secrets.slice(-2))));
    return {
      service,
      standard: secrets.map((secret) => verifies(() => new Webhook(secret).verify(body, sent))),
    };
  }

  it('lets either secret verify Standard Webhooks, and the new one alone our own header, until the old one expires', async () => {
    assert.deepEqual(await verifiedBy(), { service: [true], standard: [true] });
    await rotate();
    assert.deepEqual(await verifiedBy(), { service: [false, true], standard: [true, true] });
    await asOwner(
      stack,
      `UPDATE webhook_endpoint SET previous_secret_expires_at = now() WHERE partner_id = $1
         AND previous_secret_expires_at BETWEEN now() + interval '23 hours' AND now() + interval '24 hours'`,
      [partner.id],
    );
    assert.deepEqual(await verifiedBy(), { service: [false, true], standard: [false, true] });
  });

  it('lets a leaked secret verify nothing once it is done twice', async () => {
    const leaked = secrets.length - 1;
    await rotate();
    assert.equal((await verifiedBy()).standard[leaked], true);
    await rotate();
    const { service, standard } = await verifiedBy();
    assert.deepEqual(service, [false, false, false, true]);
    assert.deepEqual(standard, [false, false, true, true]);
  });
});
