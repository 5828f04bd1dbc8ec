import { z } from 'zod';
import { isId } from '../domain/ids.ts';
import { WrongUsage } from '../operator/errors.ts';
import { Since, Text } from '../operator/flag-values.ts';
import { flag, list, type Noun } from '../operator/verbs.ts';
import { findByApiKey, findByIdempotencyKey, findByRequestId } from './request-reads.ts';

const Key = z
  .string()
  .regex(/^[\x20-\x7e]{1,255}$/, 'must have 1 to 255 printable ASCII characters, as partners send it')
  .refine((text) => !text.startsWith('--'), 'must not start with --');
const RequestId = z.string().refine((text) => isId('req', text), 'must be the id of a request: req_01k0…');

export const requestNoun: Noun = {
  find: list({
    about:
      "partners' requests of the last 31 days that changed something, and reveals: what each did, when, by which key, from which " +
      'address',
    takes: {
      idempotencyKey: flag(
        '<key>',
        'sent with this Idempotency-Key, which several accounts can have used',
        Key,
      ),
      requestId: flag('<id>', 'with this request id, which is in its response and in the log', RequestId),
      key: flag('<id>', 'sent with this API key (its id, not the key itself), newest first', Text(100)),
      partner: flag('<id>', 'with --idempotency-key: only those of this partner', Text(100)),
      since: flag('<time>', 'with --key: only those since then', Since),
    },
    pages: ['claim', 'rvl'],
    pagedBy: 'key',
    examples: [
      '--idempotency-key order-4711 --partner prt_01k0…',
      '--request-id req_01k0…',
      '--key key_01k0… --since 24h',
    ],
    columns:
      'created id partner_name mode operation resource_id card_id response_status request_id idempotency_key api_key_id client_address',
    refuse({ idempotencyKey, requestId, key, partner, since, before }) {
      if ([idempotencyKey, requestId, key].filter((given) => given !== null).length !== 1)
        throw new WrongUsage('give one of --idempotency-key, --request-id and --key');
      if (partner !== null && idempotencyKey === null)
        throw new WrongUsage('--partner goes with --idempotency-key: the others belong to one account');
      if ((since !== null || before !== null) && key === null)
        throw new WrongUsage('--since and --before go with --key');
    },
    async read(orm, { idempotencyKey, requestId, key, partner, since, before, limit }) {
      if (key !== null) return findByApiKey(orm, key, { since: since ?? new Date(0), before, limit });
      if (requestId !== null) return findByRequestId(orm, requestId);
      return findByIdempotencyKey(orm, idempotencyKey ?? '', partner);
    },
    note: 'See what one made with "operator card show ID", "topup show ID" or "deposit show ID".',
    none:
      'Nothing found. Requests are kept for 31 days. Not kept at all are reads, what was refused before it began (400, 401, 403, ' +
      '404, 413, 429), repeated requests (look for the first one’s Idempotency-Key), changes of webhook endpoints, and test mode ' +
      'without an Idempotency-Key: look for them in the API’s log, by requestId or keyId.',
  }),
};
