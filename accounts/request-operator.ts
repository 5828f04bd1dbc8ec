import type { Command } from 'commander';
import { z } from 'zod';
import { isId } from '../domain/ids.ts';
import { WrongUsage } from '../operator/errors.ts';
import { read, Since, Text } from '../operator/flag-values.ts';
import { listNewest, type Verbs, withLimit } from '../operator/verbs.ts';
import { readPartner } from './operator-reads.ts';
import { findByApiKey, findByIdempotencyKey, findByRequestId } from './request-operator-reads.ts';

export function requestNoun(request: Command, { session, verb, examples, err }: Verbs): void {
  const find = request
    .addHelpText('after', examples('request find --idempotency-key order-4711'))
    .command('find')
    .description(
      "partners' requests of the last 31 days that changed something, and reveals: what each did, when, by which key, " +
        'from which address',
    )
    .option(
      '--idempotency-key <key>',
      'sent with this Idempotency-Key, which several accounts can have used',
      KEY,
    )
    .option('--request-id <id>', 'with this request id, which is in its response and in the log', REQUEST_ID)
    .option(
      '--key <id>',
      'sent with this API key (its id, not the key itself), newest first',
      read(Text(100)),
    )
    .option('--partner <id>', 'with --idempotency-key: only those of this partner', read(Text(100)))
    .option('--since <time>', 'with --key: only those since then', read(Since))
    .option('--before <id>', 'with --key: only those older than the one with this id: the next page', BEFORE);
  withLimit(find)
    .addHelpText(
      'after',
      examples(
        'request find --idempotency-key order-4711 --partner prt_01k0…',
        'request find --request-id req_01k0…',
        'request find --key key_01k0… --since 24h',
      ),
    )
    .action(
      verb(async (flags: FindFlags) => {
        const { idempotencyKey, requestId, key, partner = null, since, before = null, limit } = flags;
        if ([idempotencyKey, requestId, key].filter((given) => given !== undefined).length !== 1) {
          throw new WrongUsage('give one of --idempotency-key, --request-id and --key');
        }
        if (partner !== null && idempotencyKey === undefined) {
          throw new WrongUsage('--partner goes with --idempotency-key: the others belong to one account');
        }
        if ((since !== undefined || before !== null) && key === undefined) {
          throw new WrongUsage('--since and --before go with --key');
        }
        const orm = await session.orm();
        if (partner !== null) await readPartner(orm, partner);
        const list = await listNewest(err, {
          noun: 'request',
          columns: COLUMNS,
          limit,
          isPaged: key !== undefined,
          readNewest: async (atMost) => {
            if (key !== undefined)
              return findByApiKey(orm, key, { since: since ?? new Date(0), before, limit: atMost });
            if (requestId !== undefined) return findByRequestId(orm, requestId);
            return findByIdempotencyKey(orm, idempotencyKey ?? '', partner);
          },
        });
        return { ...list, note: (list.value as object[]).length === 0 ? NOTHING_FOUND : SEE_MORE };
      }),
    );
}

const KEY = read(
  z
    .string()
    .regex(/^[\x20-\x7e]{1,255}$/, 'must have 1 to 255 printable ASCII characters, as partners send it')
    .refine((text) => !text.startsWith('--'), 'must not start with --'),
);
const REQUEST_ID = read(
  z.string().refine((text) => isId('req', text), 'must be the id of a request: req_01k0…'),
);
const BEFORE = read(
  z
    .string()
    .refine(
      (text) => isId('claim', text) || isId('rvl', text),
      'must be the id of a line: claim_01k0… or rvl_01k0…',
    ),
);

const COLUMNS =
  'created id partner_name mode operation resource_id card_id response_status request_id idempotency_key api_key_id client_address'.split(
    ' ',
  );

const NOTHING_FOUND =
  'Nothing found. Requests are kept for 31 days. Not kept at all are reads, what was refused before it began (400, 401, 403, ' +
  '404, 413, 429), repeated requests (look for the first one’s Idempotency-Key), changes of webhook endpoints, and test mode ' +
  'without an Idempotency-Key: look for them in the API’s log, by requestId or keyId.';
const SEE_MORE = 'See what one made with "operator card show ID", "topup show ID" or "deposit show ID".';

interface FindFlags {
  idempotencyKey?: string;
  requestId?: string;
  key?: string;
  partner?: string;
  since?: Date;
  before?: string;
  limit?: number;
}
