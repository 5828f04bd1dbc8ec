import type { ExpressionBuilder } from 'kysely';
import { anyOf, type Reader, readStatement } from '../../db/sql.ts';
import type { Tables } from '../../db/tables.ts';
import type { Mode } from '../../domain/mode.ts';
import type { WebhookEndpointRow } from '../../resources/webhook-endpoint.ts';

/** An account's endpoints in these modes, test before live, without their secrets. */
export const readEndpoints = (
  em: Reader,
  partnerId: string,
  modes: readonly Mode[],
): Promise<WebhookEndpointRow[]> => endpointsOf(em, { partnerId, modes });

/** The columns of a WebhookEndpointRow. */
export const shownOfEndpoint = ({ eb, fn }: ExpressionBuilder<Tables, 'webhook_endpoint'>) =>
  [
    ...([
      'partner_id',
      'mode',
      'url',
      'status',
      'disabled_reason',
      'standard_headers',
      'created_at',
    ] as const),
    eb
      .case()
      .when('previous_secret_expires_at', '>', fn<string>('now'))
      .then(eb.ref('previous_secret_expires_at'))
      .end()
      .as('previous_secret_expires_at'),
  ] as const;

const endpointsOf = readStatement((db, { partnerId, modes }: { partnerId: string; modes: readonly Mode[] }) =>
  db
    .selectFrom('webhook_endpoint')
    .select(shownOfEndpoint)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', anyOf(modes))
    .orderBy('mode', 'desc'),
);
