import type { Event } from '../client/generated/types.gen.ts';

/** What an event is about. */
export function subjectOf({ data }: Event): { type: string; id: string } | null {
  if ('transaction' in data) return { type: 'transaction', id: data.transaction.id };
  if ('authorization' in data) return { type: 'authorization', id: data.authorization.id };
  if ('topup' in data) return { type: 'topup', id: data.topup.id };
  if ('withdrawal' in data) return { type: 'withdrawal', id: data.withdrawal.id };
  if ('card' in data) return { type: 'card', id: data.card.id };
  if ('deposit' in data) return { type: 'deposit', id: data.deposit.id };
  if ('api_key' in data) return { type: 'api_key', id: data.api_key.id };
  if ('webhook_endpoint' in data) return { type: 'webhook_endpoint', id: data.webhook_endpoint.id };
  return null;
}
