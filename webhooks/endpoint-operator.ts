import { z } from 'zod';
import { readPartner } from '../accounts/reads.ts';
import { ApiError } from '../domain/api-error.ts';
import { Mode } from '../domain/mode.ts';
import { Refusal } from '../domain/refusal.ts';
import { WrongUsage } from '../operator/errors.ts';
import { ModeNames, Text } from '../operator/flag-values.ts';
import type { Output } from '../operator/render.ts';
import { argument, flag, flagOr, type Noun, needed, verb } from '../operator/verbs.ts';
import type { Orm } from '../platform/db/orm.ts';
import { anyOf, readStatement } from '../platform/db/sql.ts';
import { parseWebhookUrl, WEBHOOK_URL_PROBLEMS } from './client/webhook-url.ts';
import { presentWebhookEndpoint, type WebhookEndpointRow } from './endpoint-resource.ts';
import { rotateEndpointSecret } from './endpoint-secrets.ts';
import { switchEndpoints } from './endpoint-status.ts';
import { setEndpoint } from './endpoints.ts';
import { pickEndpoints, readEndpoints } from './reads.ts';
import { presentWebhookReplay, REPLAY_COLUMNS } from './replays/resource.ts';

const PARTNER = argument('id of the partner');
const MODES = flagOr(Mode.options, '<mode>', 'test, live or both (default: both)', ModeNames);
const endpoint = (help: string) => flag('<id>', help, Text(100));

/** Of an account, `replays` shows the newest ones. */
const MAX_REPLAYS = 100;
const SHOWN_ONCE = 'This secret is shown only once: hand it over now.';

export const webhookEndpointNoun: Noun = {
  set: verb({
    about:
      'set the URL of the oldest endpoint and enable it; a new endpoint gets a secret, which is shown only once',
    takes: {
      partner: PARTNER,
      mode: MODES,
      url: needed('<url>', 'https, on the public internet', z.string()),
    },
    examples: [
      'prt_01k0… --url https://hooks.acme.example/cards',
      'prt_01k0… --url https://sandbox.acme.example/cards --mode test',
    ],
    async run({ partner: partnerId, mode: modes, url: text }, { session }) {
      const { webhookAllowLoopbackHttp: allowLoopbackHttp } = session.config;
      const target = parseWebhookUrl(text, { allowLoopbackHttp });
      if ('problem' in target) throw new WrongUsage(`--url ${WEBHOOK_URL_PROBLEMS[target.problem]}`);
      const change = { partnerId, modes, url: target.href };
      const { secret } = await setEndpoint(await session.withKeys(), change).catch(refuse);
      const kept = `The secret is unchanged; replace it with "operator webhook-endpoint rotate-secret ${partnerId}".`;
      return { value: { url: target.href, secret }, note: secret === null ? kept : SHOWN_ONCE };
    },
  }),

  list: verb({
    about: 'all endpoints of each mode, the oldest first, without their secrets',
    takes: { partner: PARTNER, mode: MODES },
    examples: ['prt_01k0… --mode live'],
    async run({ partner, mode: modes }, { session }) {
      const endpoints = await readWebhookEndpoints(await session.orm(), partner, modes);
      return { value: endpoints.map((row) => presentWebhookEndpoint(row)), columns: COLUMNS };
    },
  }),

  show: verb({
    about: 'the oldest endpoint of each mode, without its secret',
    takes: { partner: PARTNER, mode: MODES, endpoint: endpoint('that endpoint instead') },
    examples: ['prt_01k0…'],
    async run({ partner, mode: modes, endpoint }, { session }) {
      const all = await readWebhookEndpoints(await session.orm(), partner, modes);
      return toOutput(requireEndpoints(pickEndpoints(all, endpoint), partner, modes), modes);
    },
  }),

  replays: verb({
    about: "the partner's replays, newest first, and how far each has got",
    takes: { partner: PARTNER, mode: MODES },
    examples: ['prt_01k0… --mode live'],
    async run({ partner: partnerId, mode: modes }, { session }) {
      const orm = await session.orm();
      await readPartner(orm, partnerId);
      const wanted = { partnerId, modes, limit: MAX_REPLAYS };
      const rows = await selectReplays(orm.em.fork(), wanted);
      return {
        value: rows.map((row) => ({ ...presentWebhookReplay(row), events: row.wanted })),
        columns: 'id mode endpoint_id status events matched sent created'.split(' '),
      };
    },
  }),

  'rotate-secret': verb({
    about: "replace the oldest endpoint's secret with a new one for both modes, which is shown only once",
    takes: { partner: PARTNER, mode: MODES, endpoint: endpoint('that endpoint instead') },
    examples: ['prt_01k0…'],
    async run({ partner: partnerId, mode: modes, endpoint: endpointId }, { session }) {
      const wanted = { partnerId, modes, endpointId };
      const { endpoints, secret } = await rotateEndpointSecret(await session.withKeys(), wanted);
      const [first] = requireEndpoints(endpoints, partnerId, modes);
      return {
        value: { url: first?.url, secret },
        note: `${SHOWN_ONCE} It signs from now on; for 24 hours the previous one also signs, in webhook-signature.`,
      };
    },
  }),

  disable: switchVerb(
    'disabled',
    'stop sending to all endpoints; events are parked until the endpoint is enabled',
  ),
  enable: switchVerb('enabled', 'start sending to all endpoints again, parked events included'),
};

function switchVerb(status: 'disabled' | 'enabled', about: string) {
  return verb({
    about,
    takes: { partner: PARTNER, mode: MODES, endpoint: endpoint('only that endpoint') },
    examples: ['prt_01k0… --mode live'],
    async run({ partner: partnerId, mode: modes, endpoint: endpointId }, { session }) {
      const wanted = { partnerId, modes, endpointId, status };
      const endpoints = await switchEndpoints(await session.operator(), wanted);
      return toOutput(requireEndpoints(endpoints, partnerId, modes), modes);
    },
  });
}

/** One endpoint if the command was for one mode, or else a list. */
function toOutput(rows: WebhookEndpointRow[], modes: readonly Mode[]): Output {
  const resources = rows.map((row) => presentWebhookEndpoint(row));
  const [only] = resources;
  if (modes.length === 1 && resources.length === 1 && only !== undefined) return { value: only };
  return { value: resources, columns: COLUMNS };
}

const COLUMNS =
  'id mode url status disabled_reason event_types standard_webhooks consecutive_failures previous_secret_expires_at'.split(
    ' ',
  );

const selectReplays = readStatement(
  (db, { partnerId, modes, limit }: { partnerId: string; modes: readonly Mode[]; limit: number }) =>
    db
      .selectFrom('webhook_replay')
      .select(REPLAY_COLUMNS)
      .where('partner_id', '=', partnerId)
      .where('mode', '=', anyOf(modes))
      .orderBy('id', 'desc')
      .limit(limit),
);

/** What the command refuses to a partner, it refuses to an operator in the same words. */
function refuse(error: unknown): never {
  throw error instanceof ApiError ? new Refusal(error.message) : error;
}

/**
 * An account's endpoints in these modes, test before live. @throws Refusal if there is no such account, or no
 * endpoint
 */
async function readWebhookEndpoints(
  orm: Orm,
  partnerId: string,
  modes: readonly Mode[],
): Promise<WebhookEndpointRow[]> {
  await readPartner(orm, partnerId);
  const rows = await readEndpoints(orm.em.fork(), { partnerId, modes });
  return requireEndpoints(rows, partnerId, modes);
}

/** @throws Refusal if there are none */
function requireEndpoints(
  rows: WebhookEndpointRow[],
  partnerId: string,
  modes: readonly Mode[],
): WebhookEndpointRow[] {
  if (rows.length > 0) return rows;
  throw new Refusal(
    `${partnerId} has no webhook endpoint for ${modes.join(' or ')} mode: create one with ` +
      `"operator webhook-endpoint set ${partnerId} --url U".`,
  );
}
