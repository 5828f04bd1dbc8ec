import { beginTransfer } from '../../../cards/transfers/begin.ts';
import type { TransferRow } from '../../../cards/transfers/resource.ts';
import type { Mode } from '../../../domain/mode.ts';
import { readBalance } from '../../../ledger/balances.ts';
import { of, TRANSFER_COLUMNS } from '../../../platform/db/columns.ts';
import { query } from '../../../platform/db/sql.ts';
import type { CommandContext } from '../../../requests/command-context.ts';
import { readClaimResponse } from '../../../requests/response.ts';
import { resourceOf } from '../claims.ts';
import { balanceOfCard } from '../money.ts';
import { readUsage, type TestCommands } from './open-commands.ts';

export const beginTopUp = (context: CommandContext, claimId: string) =>
  beginTransfer(context, claimId, 'topup');

export interface TopUpCase {
  partnerId: string;
  mode: Mode;
  cardId: string;
  claimId: string;
}

/** Everything a top-up changes: its row, its events, its answer, and what the ledger and the account's usage say. */
export async function stateOf(commands: TestCommands, { partnerId, mode, cardId, claimId }: TopUpCase) {
  const em = commands.context.orm.em.fork();
  const topUpId = await resourceOf(commands.context, claimId);
  const [topUp] = await query<TransferRow>(
    em,
    `SELECT ${of('t', TRANSFER_COLUMNS).join(', ')} FROM card_transfer t WHERE id = $1`,
    [topUpId],
  );
  const events = await query<{ type: string; body: string }>(
    em,
    `SELECT type, body FROM event WHERE card_id = $1 AND type LIKE 'topup.%' ORDER BY id`,
    [cardId],
  );
  const { availableCents, heldCents } = await readBalance(em, partnerId, mode);
  const response = await readClaimResponse(commands.context, claimId);
  return {
    topUp: topUp === undefined ? null : [topUp.status, topUp.failure_code, topUp.card_balance_cents],
    events: events
      .map((event) => JSON.parse(event.body))
      .filter(({ data }) => data.topup.id === topUpId)
      .map(({ type, data }) => [type, data.topup.status, data.topup.card_balance, data.card.balance]),
    answer:
      response === null
        ? null
        : [response.status, JSON.parse(response.body).error?.code ?? JSON.parse(response.body).status],
    cents: [availableCents, heldCents],
    card: await balanceOfCard(em, cardId),
    usage: await readUsage(commands, partnerId, mode),
  };
}
