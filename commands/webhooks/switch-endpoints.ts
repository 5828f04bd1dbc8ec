import { anyOf, readStatement, writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { Mode } from '../../domain/mode.ts';
import type { WebhookEndpointRow } from '../../resources/webhook-endpoint.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import { lockPartner } from '../accounts/partners.ts';
import { enableEndpoints } from './enable-endpoints.ts';
import { readEndpoints } from './read-endpoints.ts';

/**
 * Disables an account's endpoints by hand, or enables them and sends what was parked. One that is so already stays as
 * it is. @returns those there are
 * @throws Refusal where there is no such account.
 */
export function switchEndpoints(
  { orm, actor }: Operator,
  { partnerId, modes, status }: { partnerId: string; modes: readonly Mode[]; status: 'enabled' | 'disabled' },
): Promise<WebhookEndpointRow[]> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const changing = await lockThoseNot(tx, { partnerId, modes, status });
    const changed = changing.map(({ mode }) => mode);
    if (status === 'enabled') await enableEndpoints(tx, partnerId, modes);
    else await disableEndpoints(tx, { partnerId, modes: changed });
    if (changed.length > 0) {
      const verb = status === 'enabled' ? 'enable' : 'disable';
      recordAudit(tx, actor, `webhook-endpoint.${verb}`, partnerId, { modes: changed });
    }
    return readEndpoints(tx, partnerId, modes);
  });
}

interface Endpoints {
  partnerId: string;
  modes: readonly Mode[];
}

const lockThoseNot = readStatement(
  (db, { partnerId, modes, status }: Endpoints & { status: 'enabled' | 'disabled' }) =>
    db
      .selectFrom('webhook_endpoint')
      .select('mode')
      .where('partner_id', '=', partnerId)
      .where('mode', '=', anyOf(modes))
      .where('status', '<>', status)
      .orderBy('mode', 'desc')
      .forNoKeyUpdate(),
);

const disableEndpoints = writeStatement((db, { partnerId, modes }: Endpoints) =>
  db
    .updateTable('webhook_endpoint')
    .set({ status: 'disabled', disabled_reason: 'disabled by an operator' })
    .where('partner_id', '=', partnerId)
    .where('mode', '=', anyOf(modes)),
);
