import type { Event } from '../client/generated/types.gen.ts';

/** The id of what an event is about. */
export function subjectId({ data }: Event): string {
  if ('transaction' in data) return data.transaction.id;
  if ('authorization' in data) return data.authorization.id;
  if ('topup' in data) return data.topup.id;
  if ('withdrawal' in data) return data.withdrawal.id;
  if ('card' in data) return data.card.id;
  if ('deposit' in data) return data.deposit.id;
  if ('api_key' in data) return data.api_key.id;
  if ('webhook_endpoint' in data) return data.webhook_endpoint.id;
  return '—';
}
