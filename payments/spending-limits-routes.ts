import { sql } from 'kysely';
import { listEnvelope } from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { exampleList } from '../api/openapi/examples.ts';
import { appliedControls, type ControlsColumns } from '../cards/applied-controls.ts';
import { SPENDING_LIMIT } from '../cards/examples.ts';
import { presentSpendingLimit, SpendingLimitResource } from '../cards/resource.ts';
import { ApiError } from '../domain/api-error.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import type { SpendingControls } from '../domain/spending-controls.ts';
import type { Orm } from '../platform/db/orm.ts';
import { tenantStatement } from '../platform/db/sql.ts';

const listSpendingLimits = declare({
  method: 'get',
  path: '/cards/:cardId/spending-limits',
  scope: 'cards:read',
  operationId: 'spendingLimits.list',
  summary: "List a card's spending limits",
  description:
    "The card's limits, then those of your account, each with what was spent of it. They are in the order in which they were " +
    'given, on one page.',
  responses: { 200: listEnvelope(SpendingLimitResource) },
  examples: { 200: exampleList(SPENDING_LIMIT) },
  errors: ['card_not_found'],
});

export const spendingLimits = resource({ listSpendingLimits }, ({ orm }: { orm: Orm }) => ({
  async listSpendingLimits({ caller, params }) {
    const data = await readSpendingLimits(orm, caller, params.cardId ?? '');
    return { status: 200, body: { object: 'list', data, has_more: false, next_cursor: null } };
  },
}));

/** @throws ApiError `card_not_found`, for an id of another shape as well. */
export async function readSpendingLimits(
  orm: Orm,
  tenant: Tenant,
  cardId: string,
): Promise<SpendingLimitResource[]> {
  const at = new Date();
  const [row] = isId('card', cardId) ? await selectSpending(orm.em.fork(), tenant, { cardId, at }) : [];
  if (row === undefined) throw new ApiError('card_not_found');
  return appliedControls(row.spending_controls, row).limits.map(presentSpendingLimit);
}

const selectSpending = tenantStatement(
  (_, { partnerId, mode, cardId, at }: Tenant & { cardId: string; at: Date }) => sql<
    ControlsColumns & { spending_controls: SpendingControls | null }
  >`
    SELECT k.spending_controls, p.spending_controls AS account_controls,
      (SELECT jsonb_agg(r) FROM read_spending(k, p.spending_controls, account_time(k.partner_id, k.mode, ${at})) r) AS spending
    FROM card k JOIN partner p ON p.id = k.partner_id
    WHERE k.id = ${cardId} AND k.partner_id = ${partnerId} AND k.mode = ${mode}`,
);
