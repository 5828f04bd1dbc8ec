import { pino } from 'pino';
import type { CardNetwork } from '../../issuers/card-network.ts';
import { startInbox } from '../../issuers/inbox/jobs.ts';
import { startLiveNetwork } from '../../issuers/live-network.ts';
import { type RequestBudget, UNLIMITED } from '../../issuers/request-budget.ts';
import { WORKER_ROLE } from '../../platform/db/login.ts';
import { asOwner } from './postgres.ts';
import type { TestStack } from './stack.ts';
import { until } from './until.ts';

/** Waits until a worker has looked at every payment that has changed at the card network. */
export async function inboxRead(stack: TestStack): Promise<void> {
  await until('everything is read', async () => {
    const unread = await asOwner(
      stack,
      `SELECT FROM network_inbox
       WHERE kind = 'payment'
         AND (reason IS NULL OR reason IN ('network_unavailable', 'not_readable', 'not_taken'))`,
      [],
    );
    return unread.length === 0;
  });
}

/** Why each of these payments waits; nothing of one that does not. */
export async function whyWaiting(stack: TestStack, ids: readonly string[]): Promise<(string | null)[]> {
  const rows = await asOwner<{ reason: string | null }>(
    stack,
    'SELECT reason FROM network_inbox WHERE id = any($1) ORDER BY id',
    [ids],
  );
  return rows.map(({ reason }) => reason);
}

/** Takes what has changed at the stack's issuer, as a worker does that does nothing else. @returns a function that stops it */
export async function startInboxAlone(
  { orm, operator, client, config }: TestStack,
  budget: RequestBudget = UNLIMITED,
): Promise<() => Promise<void>> {
  const { cardNetwork, databaseUrl } = config;
  const { ring } = operator;
  const logger = pino({ level: 'silent' });
  const live = await startLiveNetwork({
    cardNetwork,
    config,
    orm,
    ring,
    budget,
    logger,
    apiUrl: null,
  });
  const inbox = startInbox({
    orm,
    ring,
    direct: { databaseUrl, role: WORKER_ROLE },
    client,
    liveNetwork: live.network as CardNetwork,
    cardNetwork,
    authorizationTtlMs: 60_000,
    logger,
  });
  return async () => {
    await inbox.stop();
    await live.stop();
  };
}
