import { query } from '../../../platform/db/sql.ts';
import { networkStatus } from '../../support/card-status.ts';
import type { Answer } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import type { Account, Card } from '../account.ts';
import { ask } from '../clients/ask.ts';
import { MAX_TRIES, type Service, untilThere } from '../clients/running-service.ts';
import type { Settled } from '../clients/token-chain.ts';
import { Difference } from '../difference.ts';

type Resource = Answer['json'];

export interface ObservedCard {
  card: Resource;
  topUps: Resource[];
  withdrawals: Resource[];
  authorizations: Resource[];
  transactions: Resource[];
  limits: Resource[];
  networkStatus: string | undefined;
}

export async function observeCard(service: Service, { account, id = '' }: Card): Promise<ObservedCard> {
  const [card, topUps, withdrawals, authorizations, transactions, limits, status] = await Promise.all([
    get(service, account, `/cards/${id}`),
    listAll(service, account, `/cards/${id}/topups`),
    listAll(service, account, `/cards/${id}/withdrawals`),
    listAll(service, account, `/cards/${id}/authorizations`),
    listAll(service, account, `/cards/${id}/transactions`),
    get(service, account, `/cards/${id}/spending-limits`),
    untilThere(() => networkStatus(service.stack, id)),
  ]);
  return {
    card,
    topUps,
    withdrawals,
    authorizations,
    transactions,
    limits: limits.data,
    networkStatus: status,
  };
}

export interface ObservedAccount {
  cards: Resource[];
  balance: Resource;
  /** Oldest first. */
  changes: Resource[];
  /** Newest first. */
  deposits: Resource[];
  /** Bodies. */
  events: Resource[];
  usage: { openCards: number; loadedCents: number };
}

export async function observeAccount(service: Service, account: Account): Promise<ObservedAccount> {
  const [cards, balance, changes, deposits, events, usage] = await Promise.all([
    listAll(service, account, '/cards'),
    get(service, account, '/balance'),
    listAll(service, account, '/balance/transactions'),
    listAll(service, account, '/funding/deposits'),
    readEvents(service, account),
    readUsage(service, account),
  ]);
  return { cards, balance, changes: changes.reverse(), deposits, events, usage };
}

async function get(service: Service, { key }: Account, path: string): Promise<Resource> {
  const { status, json, text } = await ask(service, { key, method: 'GET', path });
  if (status !== 200) throw new Difference(`GET ${path} got ${status} ${text}`);
  return json;
}

async function listAll(service: Service, account: Account, path: string): Promise<Resource[]> {
  const items: Resource[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Resource = await get(
      service,
      account,
      `${path}?limit=100${cursor && `&starting_after=${cursor}`}`,
    );
    items.push(...page.data);
    cursor = page.next_cursor;
  }
  return items;
}

async function readEvents({ stack }: Service, { partnerId, mode }: Account): Promise<Resource[]> {
  const rows = await untilThere(() =>
    query<{ body: string }>(
      stack.orm.em.fork(),
      'SELECT body FROM event WHERE partner_id = $1 AND mode = $2 ORDER BY id',
      [partnerId, mode],
    ),
  );
  return rows.map(({ body }) => JSON.parse(body));
}

async function readUsage(service: Service, { partnerId, mode }: Account) {
  const [row] = await untilThere(() =>
    query<{ open_cards: number; loaded_cents: string }>(
      service.stack.orm.em.fork(),
      'SELECT open_cards, loaded_cents FROM account_usage WHERE partner_id = $1 AND mode = $2',
      [partnerId, mode],
    ),
  );
  return { openCards: row?.open_cards ?? 0, loadedCents: Number(row?.loaded_cents ?? 0) };
}

/** Waits until everything in flight waits for an operator. */
export async function untilQuiet(
  service: Service,
  accounts: readonly Account[],
  { solidNumber }: Settled,
): Promise<void> {
  let open: { id: string }[] = [];
  let tries = 0;
  const what = () => `these are no longer in flight: ${open.map(({ id }) => id)}`;
  await until(what, async () => {
    open = await untilThere(() =>
      query<{ id: string }>(
        service.stack.orm.em.fork(),
        `SELECT id FROM card WHERE partner_id = ANY ($1) AND status = 'funding_pending' AND funding_cents % 100 <> 47
         UNION ALL
         SELECT t.id FROM card_transfer t LEFT JOIN simulated_network.operation o ON o.token = t.id
         WHERE t.partner_id = ANY ($1) AND t.status = 'pending' AND (t.amount_cents % 100 <> 47
           OR (t.direction = 'withdrawal' AND o.outcome IS DISTINCT FROM 'succeeded'))
         UNION ALL
         SELECT id FROM idempotency_claim WHERE partner_id = ANY ($1) AND response_status IS NULL
         UNION ALL
         SELECT deposit_id FROM deposit_payment WHERE partner_id = ANY ($1) AND status = 'found'
         UNION ALL
         SELECT id FROM deposit WHERE partner_id = ANY ($1) AND (told_version < version
           OR NOT EXISTS (SELECT FROM chain_scan s WHERE s.network = deposit.network AND s.block_number >= $2
             AND (deposit.status <> 'awaiting_payment' OR deposit.expires_at >= s.block_time)))`,
        [accounts.map(({ partnerId }) => partnerId), solidNumber],
      ),
    );
    tries += 1;
    if (tries > MAX_TRIES) throw new Difference(`not so after ${tries} looks: ${what()}`);
    return open.length === 0;
  });
}
