import type { ExpressionBuilder } from 'kysely';
import { anyOf, readStatement } from '../../db/sql.ts';
import type { Tables } from '../../db/tables.ts';
import type { Mode } from '../../domain/mode.ts';

/** The columns of a WebhookEndpointRow. */
export const shownEndpointColumns = ({ eb, fn }: ExpressionBuilder<Tables, 'webhook_endpoint'>) =>
  [
    'partner_id',
    'mode',
    'url',
    'status',
    'disabled_reason',
    'standard_headers',
    'created_at',
    eb
      .case()
      .when('previous_secret_expires_at', '>', fn<string>('now'))
      .then(eb.ref('previous_secret_expires_at'))
      .end()
      .as('previous_secret_expires_at'),
  ] as const;

/** An account's endpoints in these modes, test before live, without their secrets. */
export const readEndpoints = readStatement(
  (db, { partnerId, modes }: { partnerId: string; modes: readonly Mode[] }) =>
    db
      .selectFrom('webhook_endpoint')
      .select(shownEndpointColumns)
      .where('partner_id', '=', partnerId)
      .where('mode', '=', anyOf(modes))
      .orderBy('mode', 'desc'),
);
