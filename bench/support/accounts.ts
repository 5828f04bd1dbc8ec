import { randomUUID } from 'node:crypto';
import type { Pool } from 'undici';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import { createApiKey } from '../../accounts/api-keys.ts';
import { createPartner, negotiateLimits } from '../../accounts/partners.ts';
import type { Mode } from '../../domain/mode.ts';
import type { BenchService } from './service.ts';

export interface Account {
  partnerId: string;
  keys: Record<Mode, string>;
}

export async function fundedAccount(service: BenchService): Promise<Account> {
  const operator = { orm: service.orm, actor: 'bench' };
  const partner = await createPartner(operator, { name: 'Bench', secureDetailsEnabled: false });
  return fundAccount(service, partner.id);
}

/** Gives an account keys, more money and higher limits than a measurement uses. */
export async function fundAccount({ orm, ring }: BenchService, partnerId: string): Promise<Account> {
  const operator = { orm, ring, actor: 'bench' };
  await negotiateLimits(operator, partnerId, {
    maxOpenCards: 1_000_000,
    maxIssuedPerDayCents: 1_000_000_000,
  });
  const keys = { test: '', live: '' };
  for (const mode of ['test', 'live'] as const) {
    keys[mode] = (await createApiKey(operator, { partnerId, mode, name: null })).key;
    const funds = { partnerId, mode, amountCents: 1_000_000_000, reason: 'measuring', key: null };
    await adjustBalance(operator, funds);
  }
  return { partnerId, keys };
}

/** @throws Error unless the answer is a 2xx. @returns its body */
export async function ask(
  { pool, key }: { pool: Pool; key: string },
  method: 'GET' | 'POST',
  path: string,
  body?: Record<string, unknown>,
): Promise<string> {
  const answer = await pool.request({
    method,
    path: `/v1${path}`,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(method === 'POST' && { 'idempotency-key': randomUUID() }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await answer.body.text();
  if (answer.statusCode > 299) throw new Error(`${method} ${path} answered ${answer.statusCode}: ${text}`);
  return text;
}

/** @returns the card's id */
export async function createCard(pool: Pool, mode: Mode, { keys }: Account): Promise<string> {
  const card = { amount: 1_000, external_ref: randomUUID(), cardholder_first_name: 'Ada' };
  return JSON.parse(await ask({ pool, key: keys[mode] }, 'POST', '/cards', card)).id;
}
