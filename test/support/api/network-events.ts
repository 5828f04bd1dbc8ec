import { randomUUID } from 'node:crypto';
import {
  simulatedNetworkCredentials,
  simulatedNetworkSecrets,
} from '../../../issuers/simulated/credentials.ts';
import { signBody } from '../../../issuers/simulated/signature.ts';
import { query } from '../../../platform/db/sql.ts';
import type { Answer, TestStack } from '../stack.ts';

/** Sends bytes as the card network would, with another signature if one is given. */
export async function sendAsNetwork(
  stack: TestStack,
  path: string,
  body: string | Uint8Array<ArrayBuffer>,
  signature?: string | null,
): Promise<Answer> {
  const secret = simulatedNetworkCredentials(simulatedNetworkSecrets(stack.operator.ring)[0]).callbackSecret;
  const signed = signature === undefined ? signBody(body, secret) : signature;
  const response = await fetch(`http://${stack.config.host}:${stack.config.port}${path}`, {
    method: 'POST',
    body,
    headers: signed === null ? {} : { 'x-network-signature': signed },
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: text === '' ? null : JSON.parse(text),
  };
}

export async function networkIdOf(stack: TestStack, cardId: string): Promise<string> {
  const [row] = await query<{ network_card_id: string }>(
    stack.orm.em.fork(),
    'SELECT network_card_id FROM card WHERE id = $1',
    [cardId],
  );
  return row?.network_card_id ?? '';
}

/** A transaction as the network reports it: by default a purchase of 100 cents with a new id. */
export function networkTransaction(networkCardId: string, more: object = {}): Record<string, unknown> {
  return {
    ...{
      networkCardId,
      networkTransactionId: randomUUID(),
      type: 'purchase',
      amountCents: 100,
      currency: 'USD',
    },
    ...more,
  };
}
