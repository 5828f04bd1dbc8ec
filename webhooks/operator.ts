import { type Command, Option } from 'commander';
import { z } from 'zod';
import { readPartner } from '../accounts/reads.ts';
import { DeliveryStatus, EventType } from '../domain/event.ts';
import { WrongUsage } from '../operator/errors.ts';
import { read, Since, Text } from '../operator/flag-values.ts';
import { listNewest, type Verbs, withLimit } from '../operator/verbs.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readWebhook, readWebhooks } from './operator-reads.ts';
import { requeueWebhook, requeueWebhooks } from './requeue-operator.ts';

const COLUMNS = [
  'created',
  'id',
  'endpoint_id',
  'partner_name',
  'mode',
  'type',
  'status',
  'attempt_count',
  'next_attempt_at',
  'last_error',
];
const SINCE = 'only those created since then: 24h, 2026-11-20 or 2026-11-20T08:00:00Z';

/** Throws if there is no such card. */
type ReadCard = (orm: Orm, cardId: string) => Promise<unknown>;

export function webhookNoun(webhook: Command, verbs: Verbs, readCard: ReadCard): void {
  webhook.addHelpText('after', verbs.examples('webhook list --status given_up', 'webhook requeue evt_01k0…'));
  listVerb(webhook, verbs, readCard);
  showVerb(webhook, verbs);
  requeueVerb(webhook, verbs);
}

interface ListFlags {
  status?: DeliveryStatus | null;
  partner?: string | null;
  card?: string | null;
  type?: EventType | null;
  endpoint?: string | null;
  since?: Date | null;
  limit?: number;
}

function listVerb(webhook: Command, { session, verb, examples, err }: Verbs, readCard: ReadCard): void {
  const list = webhook
    .command('list')
    .description('the events of the last 30 days, newest first, a line for each endpoint')
    .addOption(statusOption('only those with this status'))
    .option('--partner <id>', 'only those of this partner', read(Text(100)))
    .option('--card <id>', 'only what is about this card', read(Text(100)))
    .option('--type <type>', 'only events of this type, such as card.issued', read(TypeName))
    .option('--endpoint <id>', 'only what goes to this endpoint', read(Text(100)))
    .option('--since <time>', SINCE, read(Since));
  withLimit(list)
    .addHelpText(
      'after',
      examples(
        'webhook list --status given_up',
        'webhook list --partner prt_01k0… --since 24h',
        'webhook list --card card_01k0… --type card.transaction.created',
      ),
    )
    .action(
      verb(async (flags: ListFlags) => {
        const {
          status = null,
          partner = null,
          card = null,
          type = null,
          endpoint = null,
          since = null,
          limit,
        } = flags;
        const orm = await session.orm();
        if (partner !== null) await readPartner(orm, partner);
        if (card !== null) await readCard(orm, card);
        return listNewest(err, {
          noun: 'webhook',
          columns: COLUMNS,
          limit,
          readNewest: (atMost) =>
            readWebhooks(orm, {
              status,
              type,
              since,
              limit: atMost,
              partnerId: partner,
              cardId: card,
              endpointId: endpoint,
            }),
        });
      }),
    );
}

function showVerb(webhook: Command, { session, verb, examples }: Verbs): void {
  webhook
    .command('show')
    .description('one event with every attempt to send it, the responses, and its workflow')
    .argument('<event>', 'id of the event')
    .option(
      '--endpoint <id>',
      'the attempts at this endpoint (default: the oldest it is for)',
      read(Text(100)),
    )
    .addHelpText('after', examples('webhook show evt_01k0…'))
    .action(
      verb(async (eventId: string, { endpoint: endpointId = null }: { endpoint?: string | null }) => {
        const value = await readWebhook(await session.orm(), session.keys(), { eventId, endpointId });
        return { value: { ...value, workflow_status: await session.workflowStatus(value.workflow_id) } };
      }),
    );
}

interface RequeueFlags {
  partner?: string;
  endpoint?: string | null;
  since?: Date;
  status?: DeliveryStatus;
  yes?: true;
}

function requeueVerb(webhook: Command, verbs: Verbs): void {
  const { session, verb, examples } = verbs;
  webhook
    .command('requeue')
    .description("send one event again now, or all of a partner's events that were given up or parked")
    .argument('[event]', 'id of the event')
    .option('--partner <id>', "all of this partner's events, after you confirm", read(Text(100)))
    .option('--endpoint <id>', 'only to this endpoint (default: to each it is for)', read(Text(100)))
    .option('--since <time>', SINCE, read(Since))
    .addOption(statusOption('with --partner: those with this status (default: given_up and parked)'))
    .option('--yes', 'with --partner: do not ask for confirmation')
    .addHelpText(
      'after',
      examples(
        'webhook requeue evt_01k0…',
        'webhook requeue --partner prt_01k0… --since 24h',
        'webhook requeue --partner prt_01k0… --status no_endpoint --yes',
      ),
    )
    .action(
      verb(
        async (
          eventId: string | undefined,
          { partner, endpoint = null, since, status, yes }: RequeueFlags,
        ) => {
          if ((eventId === undefined) === (partner === undefined))
            throw new WrongUsage('give the id of an event, or --partner');
          if (partner === undefined) {
            if (since !== undefined || status !== undefined || yes)
              throw new WrongUsage('--since, --status and --yes go with --partner');
            const value = await requeueWebhook(session, { eventId: eventId ?? '', endpointId: endpoint });
            const note =
              'Workers send it within seconds. If that fails, the retry schedule starts over: ' +
              `"operator webhook show ${value.id}" has every attempt.`;
            return { value, note };
          }
          if (status === 'pending')
            throw new WrongUsage('--status pending: these events are already being sent');
          const statuses = status === undefined ? (['given_up', 'parked'] as const) : [status];
          const wanted = { partnerId: partner, endpointId: endpoint, statuses, since: since ?? null };
          const value = await requeueWebhooks(verbs, wanted, yes ?? false);
          const note =
            value.requeued === 0
              ? 'There are no events to send again.'
              : 'Workers send them, as fast as each endpoint takes them. If that fails, the retry schedule starts over: ' +
                `"operator webhook list --partner ${partner}" shows how far they are.`;
          return { value, note };
        },
      ),
    );
}

const TypeName = z.enum(EventType.options, `must be one of ${EventType.options.join(', ')}`);

const statusOption = (description: string) =>
  new Option('--status <status>', description).argParser(
    read(z.enum(DeliveryStatus.options, `must be one of ${DeliveryStatus.options.join(', ')}`)),
  );
