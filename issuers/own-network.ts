import { sql } from 'kysely';
import type { Config } from '../platform/config/service.ts';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement } from '../platform/db/sql.ts';
import { StartRefused } from '../platform/process/run-process.ts';
import { type CardNetwork, CardNetworkUnavailable } from './card-network.ts';

// A database's live data is at one card network. Another would issue what is pending a second time
// (docs/decisions/one-live-network.md).

/**
 * For a process that starts with this CARD_NETWORK. `none` is always allowed.
 * @throws StartRefused if another network has cards that are neither blocked nor failed, or operations are
 * pending there
 */
export async function takeLiveNetwork(orm: Orm, cardNetwork: Config['cardNetwork']): Promise<void> {
  if (cardNetwork === 'none') return;
  const [taken] = await take(orm, { network: cardNetwork });
  if (taken === undefined || taken.network === cardNetwork) return;
  const { network, open_cards: cards, open_operations: operations } = taken;
  throw new StartRefused(
    `CARD_NETWORK is ${cardNetwork}, but this database's live data is at ${network}: ${counted(cards, 'card')} neither ` +
      `blocked nor failed, ${counted(operations, 'operation')} pending. Set CARD_NETWORK=${network}, or use another database. ` +
      `To leave ${network}, first run with CARD_NETWORK=${network} until all cards are blocked and nothing is pending.`,
  );
}

const counted = (count: string, what: string) => `${count} ${what}${count === '1' ? '' : 's'}`;

const take = autocommitStatement(
  (_, { network }: { network: string }) =>
    sql<{
      network: string;
      open_cards: string;
      open_operations: string;
    }>`SELECT network, open_cards, open_operations FROM take_live_network(${network})`,
);

/**
 * The network, asked only if it is the one that has this database's live data. Otherwise, and before anything
 * is sent, it throws CardNetworkUnavailable: what is pending stays pending until a process with the right
 * network asks.
 */
export function askedIfOwn(network: CardNetwork, cardNetwork: string, orm: Orm): CardNetwork {
  const own =
    <Request, Answer>(ask: (request: Request) => Promise<Answer>) =>
    async (request: Request): Promise<Answer> => {
      const [held] = await hold(orm, { network: cardNetwork });
      if (held?.network !== cardNetwork) {
        throw new CardNetworkUnavailable(
          `this database's live data is at ${held?.network}, and CARD_NETWORK is ${cardNetwork}: nothing was sent`,
        );
      }
      return ask(request);
    };
  return {
    ...network,
    issueCard: own((request) => network.issueCard(request)),
    lookUpIssuance: own((token) => network.lookUpIssuance(token)),
    transfer: own((request) => network.transfer(request)),
    lookUpTransfer: own((transfer) => network.lookUpTransfer(transfer)),
    changeCardStatus: own((request) => network.changeCardStatus(request)),
    revealCard: own((card) => network.revealCard(card)),
    trueUp: own((request) => network.trueUp(request)),
  };
}

const hold = autocommitStatement(
  (_, { network }: { network: string }) => sql<{ network: string }>`
    SELECT hold_live_network(${network}) AS network`,
);
