import { randomUUID } from 'node:crypto';
import type { Pool } from 'undici';
import { simulatedNetworkCredentials, simulatedNetworkSecrets } from '../../issuers/simulated/credentials.ts';
import { SIGNATURE_HEADER, signBody } from '../../issuers/simulated/signature.ts';
import { AUTHORIZATIONS_PATH } from '../../issuers/simulated/wire.ts';
import type { KeyRing } from '../../platform/crypto/key-ring.ts';
import { query } from '../../platform/db/sql.ts';
import type { BenchService } from './service.ts';

/** @returns what asks, as the simulated network, for an authorization; it throws unless the card pays */
export function createNetworkRequests(ring: KeyRing) {
  const { callbackSecret } = simulatedNetworkCredentials(simulatedNetworkSecrets(ring)[0]);
  return async (pool: Pool, networkCardId: string, amountCents: number): Promise<void> => {
    const asked = { networkCardId, networkTransactionId: randomUUID(), amountCents, currency: 'USD' };
    const text = JSON.stringify({ ...asked, type: 'authorization' });
    const { statusCode, body } = await pool.request({
      method: 'POST',
      path: AUTHORIZATIONS_PATH,
      headers: { [SIGNATURE_HEADER]: signBody(text, callbackSecret) },
      body: text,
    });
    const response = await body.text();
    if (statusCode !== 200 || !JSON.parse(response).approved) throw new Error(`${statusCode}: ${response}`);
  };
}

/** The network's id of a card of ours. */
export async function readNetworkCardId({ orm }: BenchService, cardId: string): Promise<string> {
  const text = 'SELECT network_card_id FROM card WHERE id = $1';
  const [row] = await query<{ network_card_id: string }>(orm.em.fork(), text, [cardId]);
  return row?.network_card_id ?? '';
}
