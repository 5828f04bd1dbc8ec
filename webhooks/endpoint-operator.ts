import { type Command, Option } from 'commander';
import { sql } from 'kysely';
import { z } from 'zod';
import { readPartner } from '../accounts/reads.ts';
import { ApiError } from '../domain/api-error.ts';
import { Mode } from '../domain/mode.ts';
import { Refusal } from '../domain/refusal.ts';
import { WrongUsage } from '../operator/errors.ts';
import { ModeNames, read, Text } from '../operator/flag-values.ts';
import type { Output } from '../operator/render.ts';
import type { Verbs } from '../operator/verbs.ts';
import type { Orm } from '../platform/db/orm.ts';
import { anyOf, readStatement } from '../platform/db/sql.ts';
import { parseWebhookUrl, WEBHOOK_URL_PROBLEMS } from './client/webhook-url.ts';
import { pickEndpoints, readEndpoints } from './endpoint-reads.ts';
import { presentWebhookEndpoint, type WebhookEndpointRow } from './endpoint-resource.ts';
import { rotateEndpointSecret } from './endpoint-secrets.ts';
import { switchEndpoints } from './endpoint-status.ts';
import { setEndpoint } from './endpoints.ts';
import { presentWebhookReplay } from './replays/resource.ts';

interface Flags {
  mode?: readonly Mode[];
  endpoint?: string | null;
}

/** Of an account, `replays` shows the newest ones. */
const MAX_REPLAYS = 100;
const SHOWN_ONCE = 'This secret is shown only once: hand it over now.';

export function webhookEndpointNoun(noun: Command, { session, verb, examples }: Verbs): void {
  noun.addHelpText(
    'after',
    examples('webhook-endpoint set prt_01k0… --url https://hooks.acme.example/cards'),
  );

  const command = (name: string, description: string) =>
    noun
      .command(name)
      .description(description)
      .argument('<partner>', 'id of the partner')
      .addOption(
        new Option('--mode <mode>', 'test, live or both (default: both)').argParser(read(ModeNames)),
      );

  command(
    'set',
    'set the URL of the oldest endpoint and enable it; a new endpoint gets a secret, which is shown only once',
  )
    .requiredOption('--url <url>', 'https, on the public internet', read(z.string()))
    .addHelpText(
      'after',
      examples(
        'webhook-endpoint set prt_01k0… --url https://hooks.acme.example/cards',
        'webhook-endpoint set prt_01k0… --url https://sandbox.acme.example/cards --mode test',
      ),
    )
    .action(
      verb(async (partnerId: string, { url: text, mode: modes = Mode.options }: Flags & { url: string }) => {
        const target = parseWebhookUrl(text, {
          allowLoopbackHttp: session.config.webhookAllowLoopbackHttp,
        });
        if ('problem' in target) throw new WrongUsage(`--url ${WEBHOOK_URL_PROBLEMS[target.problem]}`);
        const change = { partnerId, modes, url: target.href };
        const { secret } = await setEndpoint(await session.withKeys(), change).catch(refuse);
        const kept = `The secret is unchanged; replace it with "operator webhook-endpoint rotate-secret ${partnerId}".`;
        return { value: { url: target.href, secret }, note: secret === null ? kept : SHOWN_ONCE };
      }),
    );

  command('list', 'all endpoints of each mode, the oldest first, without their secrets')
    .addHelpText('after', examples('webhook-endpoint list prt_01k0… --mode live'))
    .action(
      verb(async (partnerId: string, { mode: modes = Mode.options }: Flags) => {
        const endpoints = await readWebhookEndpoints(await session.orm(), partnerId, modes);
        return { value: endpoints.map((row) => presentWebhookEndpoint(row)), columns: COLUMNS };
      }),
    );

  withEndpoint(
    command('show', 'the oldest endpoint of each mode, without its secret'),
    'that endpoint instead',
  )
    .addHelpText('after', examples('webhook-endpoint show prt_01k0…'))
    .action(
      verb(async (partnerId: string, { mode: modes = Mode.options, endpoint = null }: Flags) => {
        const all = await readWebhookEndpoints(await session.orm(), partnerId, modes);
        return toOutput(requireEndpoints(pickEndpoints(all, endpoint), partnerId, modes), modes);
      }),
    );

  command('replays', "the partner's replays, newest first, and how far each has got")
    .addHelpText('after', examples('webhook-endpoint replays prt_01k0… --mode live'))
    .action(
      verb(async (partnerId: string, { mode: modes = Mode.options }: Flags) => {
        const orm = await session.orm();
        await readPartner(orm, partnerId);
        const rows = await selectReplays(orm.em.fork(), { partnerId, modes, limit: MAX_REPLAYS });
        return {
          value: rows.map((row) => ({ ...presentWebhookReplay(row), events: row.wanted })),
          columns: ['id', 'mode', 'endpoint_id', 'status', 'events', 'matched', 'sent', 'created'],
        };
      }),
    );

  withEndpoint(
    command(
      'rotate-secret',
      "replace the oldest endpoint's secret with a new one for both modes, which is shown only once",
    ),
    'that endpoint instead',
  )
    .addHelpText('after', examples('webhook-endpoint rotate-secret prt_01k0…'))
    .action(
      verb(async (partnerId: string, { mode: modes = Mode.options, endpoint: endpointId = null }: Flags) => {
        const { endpoints, secret } = await rotateEndpointSecret(await session.withKeys(), {
          partnerId,
          modes,
          endpointId,
        });
        const [first] = requireEndpoints(endpoints, partnerId, modes);
        return {
          value: { url: first?.url, secret },
          note: `${SHOWN_ONCE} It signs from now on; for 24 hours the previous one also signs, in webhook-signature.`,
        };
      }),
    );

  for (const [name, status, description] of [
    ['disable', 'disabled', 'stop sending to all endpoints; events are parked until the endpoint is enabled'],
    ['enable', 'enabled', 'start sending to all endpoints again, parked events included'],
  ] as const) {
    withEndpoint(command(name, description), 'only that endpoint')
      .addHelpText('after', examples(`webhook-endpoint ${name} prt_01k0… --mode live`))
      .action(
        verb(
          async (partnerId: string, { mode: modes = Mode.options, endpoint: endpointId = null }: Flags) => {
            const wanted = { partnerId, modes, endpointId, status };
            const endpoints = await switchEndpoints(await session.operator(), wanted);
            return toOutput(requireEndpoints(endpoints, partnerId, modes), modes);
          },
        ),
      );
  }
}

/** One endpoint if the command was for one mode, or else a list. */
function toOutput(rows: WebhookEndpointRow[], modes: readonly Mode[]): Output {
  const resources = rows.map((row) => presentWebhookEndpoint(row));
  const [only] = resources;
  if (modes.length === 1 && resources.length === 1 && only !== undefined) return { value: only };
  return { value: resources, columns: COLUMNS };
}

const COLUMNS = [
  'id',
  'mode',
  'url',
  'status',
  'disabled_reason',
  'event_types',
  'standard_webhooks',
  'consecutive_failures',
  'previous_secret_expires_at',
];

const withEndpoint = (command: Command, description: string) =>
  command.option('--endpoint <id>', description, read(Text(100)));

const selectReplays = readStatement(
  (db, { partnerId, modes, limit }: { partnerId: string; modes: readonly Mode[]; limit: number }) =>
    db
      .selectFrom('webhook_replay')
      .select(['id', 'mode', 'endpoint_id', 'status', 'wanted', 'matched', 'sent', 'created_at'])
      .where('partner_id', '=', partnerId)
      .where('mode', '=', anyOf(modes))
      .orderBy('id', 'desc')
      .limit(sql<number>`${limit}`),
);

/** What the command refuses to a partner, it refuses to an operator in the same words. */
function refuse(error: unknown): never {
  throw error instanceof ApiError ? new Refusal(error.message) : error;
}

/** An account's endpoints in these modes, test before live. @throws Refusal if there is no such account, or no endpoint */
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
