import { type Command, Option } from 'commander';
import { z } from 'zod';
import { Refusal } from '../../commands/refusal.ts';
import { rotateEndpointSecret } from '../../commands/webhooks/endpoint-secrets.ts';
import { switchEndpoints } from '../../commands/webhooks/endpoint-status.ts';
import { setEndpoint } from '../../commands/webhooks/endpoints.ts';
import { readEndpoints } from '../../commands/webhooks/read-endpoints.ts';
import type { Orm } from '../../db/orm.ts';
import { Mode } from '../../domain/mode.ts';
import { parseWebhookUrl, WEBHOOK_URL_PROBLEMS } from '../../domain/webhook-url.ts';
import { presentWebhookEndpoint, type WebhookEndpointRow } from '../../resources/webhook-endpoint.ts';
import { WrongUsage } from '../errors.ts';
import { ModeNames, read } from '../flag-values.ts';
import { readPartner } from '../reads/partners.ts';
import type { Output } from '../render.ts';
import type { Verbs } from '../verbs.ts';

interface Flags {
  mode?: readonly Mode[];
}

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
    'set the URL and enable the endpoint; a new endpoint gets a secret, which is shown only once',
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
        const { secret } = await setEndpoint(await session.withKeys(), {
          partnerId,
          modes,
          url: target.href,
        });
        const kept = `The secret is unchanged; replace it with "operator webhook-endpoint rotate-secret ${partnerId}".`;
        return { value: { url: target.href, secret }, note: secret === null ? kept : SHOWN_ONCE };
      }),
    );

  command('show', 'the endpoints, without their secrets')
    .addHelpText('after', examples('webhook-endpoint show prt_01k0…'))
    .action(
      verb(async (partnerId: string, { mode: modes = Mode.options }: Flags) =>
        toOutput(await readWebhookEndpoints(await session.orm(), partnerId, modes), modes),
      ),
    );

  command('rotate-secret', 'replace the secret with a new one for both modes, which is shown only once')
    .addHelpText('after', examples('webhook-endpoint rotate-secret prt_01k0…'))
    .action(
      verb(async (partnerId: string, { mode: modes = Mode.options }: Flags) => {
        const { endpoints, secret } = await rotateEndpointSecret(await session.withKeys(), partnerId, modes);
        const [first] = requireEndpoints(endpoints, partnerId, modes);
        return {
          value: { url: first?.url, secret },
          note: `${SHOWN_ONCE} It signs from now on; for 24 hours the previous one also signs, in webhook-signature.`,
        };
      }),
    );

  for (const [name, status, description] of [
    ['disable', 'disabled', 'stop sending; events are parked until the endpoint is enabled'],
    ['enable', 'enabled', 'start sending again, parked events included'],
  ] as const) {
    command(name, description)
      .addHelpText('after', examples(`webhook-endpoint ${name} prt_01k0… --mode live`))
      .action(
        verb(async (partnerId: string, { mode: modes = Mode.options }: Flags) => {
          const endpoints = await switchEndpoints(await session.operator(), { partnerId, modes, status });
          return toOutput(requireEndpoints(endpoints, partnerId, modes), modes);
        }),
      );
  }
}

/** One endpoint if the command was for one mode, or else a list. */
function toOutput(rows: WebhookEndpointRow[], modes: readonly Mode[]): Output {
  const resources = rows.map((row) => presentWebhookEndpoint(row));
  const [only] = resources;
  if (modes.length === 1 && only !== undefined) return { value: only };
  return {
    value: resources,
    columns: ['mode', 'url', 'status', 'disabled_reason', 'standard_webhooks', 'previous_secret_expires_at'],
  };
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
