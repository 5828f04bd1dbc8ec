import type { Command } from 'commander';
import { z } from 'zod';
import { type OperatorCard, readCard } from '../../cards/reads.ts';
import { AUTHORIZATION_MESSAGE_TYPES } from '../../domain/authorization.ts';
import { AmountCents, NetworkId } from '../../domain/fields.ts';
import { isId } from '../../domain/ids.ts';
import { CategoryCode, CountryCode } from '../../domain/merchant.ts';
import { Refusal } from '../../domain/refusal.ts';
import { TransactionType } from '../../domain/transaction.ts';
import { WrongUsage } from '../../operator/errors.ts';
import { read, Text, WholeNumber } from '../../operator/flag-values.ts';
import type { Session } from '../../operator/session.ts';
import { listNewest, type Verbs, withLimit } from '../../operator/verbs.ts';
import { presentAuthorization } from '../../payments/authorization-resource.ts';
import { sendAuthorizationEvent, sendNetworkEvent } from '../../payments/simulate-transaction.ts';
import { type Merchant, presentTransaction } from '../../payments/transaction-resource.ts';
import { notifyNetworkEvents } from '../../platform/db/notifications.ts';
import { dismissEvent, retryEvent } from './decide-by-hand.ts';
import { readNetworkEvent, readNetworkEvents } from './network-event-operator-reads.ts';
import type { NetworkEventStatus } from './tables.ts';

interface Flags {
  card: string;
  type: EventName;
  amount?: number;
  networkTransactionId: string;
  networkAuthorizationId?: string;
  partial?: true;
  merchantName?: string;
  merchantCategoryCode?: string;
  merchantCountry?: string;
  notForced?: true;
}

const TYPES = [...AUTHORIZATION_MESSAGE_TYPES, ...TransactionType.options] as const;
type EventName = (typeof TYPES)[number];
const TypeName = z.enum(TYPES, `must be one of ${TYPES.join(', ')}`);
const EXAMPLE =
  'network-event send --card card_01k0… --type purchase --amount 1250 --network-transaction-id net-4711';

export function networkEventNoun(networkEvent: Command, verbs: Verbs): void {
  networkEvent.addHelpText(
    'after',
    verbs.examples('network-event list', 'network-event show nevt_01k0…', EXAMPLE),
  );
  listVerb(networkEvent, verbs);
  showVerb(networkEvent, verbs);
  retryVerb(networkEvent, verbs);
  dismissVerb(networkEvent, verbs);
  sendVerb(networkEvent, verbs);
}

const STATUSES = ['waiting', 'done', 'dismissed'] as const satisfies NetworkEventStatus[];
const StatusName = z.enum(STATUSES, `must be one of ${STATUSES.join(', ')}`);
const EventRef = z
  .string()
  .refine((text) => isId('nevt', text), 'must be the id of an event of the network: nevt_01k0…');

interface ListFlags {
  status?: NetworkEventStatus;
  before?: string | null;
  limit?: number;
}

function listVerb(networkEvent: Command, { session, verb, examples, err }: Verbs): void {
  const list = networkEvent
    .command('list')
    .description("the card network's events that were kept to be read, newest first")
    .option('--status <status>', 'waiting (the default), done or dismissed', read(StatusName))
    .option('--before <id>', 'only those older than this one: the next page', read(EventRef));
  withLimit(list)
    .addHelpText('after', examples('network-event list', 'network-event list --status done'))
    .action(
      verb(async ({ status = 'waiting', before = null, limit }: ListFlags) => {
        const orm = await session.orm();
        const listed = await listNewest(err, {
          noun: 'event',
          columns: ['created', 'id', 'status', 'reason', 'attempts', 'network', 'network_event_id'],
          limit,
          isPaged: true,
          readNewest: (atMost) => readNetworkEvents(orm, { status, before, limit: atMost }),
        });
        const isEmpty = (listed.value as unknown[]).length === 0;
        return {
          ...listed,
          note: isEmpty ? 'Nothing found.' : 'See one with "operator network-event show ID".',
        };
      }),
    );
}

function showVerb(networkEvent: Command, { session, verb, examples }: Verbs): void {
  networkEvent
    .command('show')
    .description('what was kept of an event, and what became of it')
    .argument('<id>', 'of the event')
    .addHelpText('after', examples('network-event show nevt_01k0…'))
    .action(
      verb(async (id: string) => {
        const { orm, ring } = await session.withKeys();
        return { value: await readNetworkEvent(orm, ring, id) };
      }),
    );
}

function retryVerb(networkEvent: Command, { session, verb, examples }: Verbs): void {
  networkEvent
    .command('retry')
    .description('read an event now, also one that was dismissed')
    .argument('<id>', 'of the event')
    .addHelpText('after', examples('network-event retry nevt_01k0…'))
    .action(
      verb(async (id: string) => {
        const operator = await session.withKeys();
        await retryEvent(operator, id);
        await notifyNetworkEvents(operator.orm);
        return {
          value: await readNetworkEvent(operator.orm, operator.ring, id),
          note: 'A worker reads it within seconds.',
        };
      }),
    );
}

function dismissVerb(networkEvent: Command, { session, verb, examples }: Verbs): void {
  networkEvent
    .command('dismiss')
    .description('record that an event is not to be read')
    .argument('<id>', 'of the event')
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .addHelpText('after', examples('network-event dismiss nevt_01k0… --reason "not our card, ticket 4711"'))
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        const operator = await session.withKeys();
        await dismissEvent(operator, id, reason);
        return {
          value: await readNetworkEvent(operator.orm, operator.ring, id),
          note: 'It will not be read, even if the network sends it again.',
        };
      }),
    );
}

function sendVerb(networkEvent: Command, { session, verb, examples }: Verbs): void {
  networkEvent
    .command('send')
    .description('send what the network says about a card; sending it again returns the same')
    .requiredOption('--card <id>', 'id of the live card', read(Text(100)))
    .requiredOption('--type <type>', TYPES.join(', '), read(TypeName))
    .option(
      '--amount <cents>',
      'above zero; not needed for a reversal or an expiry',
      read(WholeNumber(AmountCents)),
    )
    .requiredOption('--network-transaction-id <id>', "the network's id for it", read(NetworkId))
    .option(
      '--network-authorization-id <id>',
      "the network's id of the authorization; for a new one, its own id if left out",
      read(NetworkId),
    )
    .option('--partial', 'of a clearing: more may follow, and the rest stays held')
    .option('--merchant-name <name>', "the merchant's name", read(Text(255)))
    .option('--merchant-category-code <code>', 'four digits', read(CategoryCode))
    .option('--merchant-country <code>', 'two capital letters', read(CountryCode))
    .option('--not-forced', 'let a purchase on a blocked card be declined')
    .addHelpText(
      'after',
      examples(
        EXAMPLE,
        `${EXAMPLE} --not-forced`,
        'network-event send --card card_01k0… --type authorization --amount 1250 --network-transaction-id net-1',
        'network-event send --card card_01k0… --type clearing --amount 1250 --network-transaction-id net-2 --network-authorization-id net-1',
      ),
    )
    .action(
      verb(async (flags: Flags) => {
        const card = await readCard(await session.orm(), flags.card);
        requireSimulated(session, card);
        const merchant = {
          name: flags.merchantName ?? null,
          category_code: flags.merchantCategoryCode ?? null,
          city: null,
          country: flags.merchantCountry ?? null,
        };
        const { type } = flags;
        return isAboutAuthorization(type)
          ? sendAuthorization(session, card, { ...flags, type }, merchant)
          : sendTransaction(session, card, { ...flags, type }, merchant);
      }),
    );
}

const isAboutAuthorization = (type: EventName): type is (typeof AUTHORIZATION_MESSAGE_TYPES)[number] =>
  (AUTHORIZATION_MESSAGE_TYPES as readonly string[]).includes(type);

function requireSimulated(session: Session, card: OperatorCard): void {
  if (card.mode === 'test') {
    throw new Refusal(
      `${card.id} is a test card, which has no network: use POST /v1/test/cards/${card.id}/simulate-transaction.`,
    );
  }
  if (session.config.cardNetwork !== 'simulated') {
    throw new Refusal(
      'CARD_NETWORK is not "simulated" here, and a real network sends its own transactions. If this installation ' +
        'runs on the simulated network, set CARD_NETWORK as the API has it.',
    );
  }
}

async function sendTransaction(
  session: Session,
  card: OperatorCard,
  flags: Flags & { type: TransactionType },
  merchant: Merchant,
) {
  if (flags.amount === undefined) throw new WrongUsage('give --amount');
  if (flags.networkAuthorizationId !== undefined || flags.partial) {
    throw new WrongUsage(`--network-authorization-id and --partial do not go with --type ${flags.type}`);
  }
  const { transaction, replayed } = await sendNetworkEvent(await session.operator(), {
    partnerId: card.partner_id,
    mode: card.mode,
    cardId: card.id,
    simulated: false,
    type: flags.type,
    amountCents: flags.amount,
    forced: !flags.notForced,
    networkTransactionId: flags.networkTransactionId,
    merchant,
  });
  return { value: transaction, note: replayed ? 'It was already settled; nothing has changed.' : undefined };
}

async function sendAuthorization(
  session: Session,
  card: OperatorCard,
  flags: Flags & { type: (typeof AUTHORIZATION_MESSAGE_TYPES)[number] },
  merchant: Merchant,
) {
  const { type, amount, networkTransactionId: messageId, networkAuthorizationId } = flags;
  const isRequest = type === 'authorization' || type === 'increment';
  if (amount === undefined && (isRequest || type === 'clearing')) throw new WrongUsage('give --amount');
  if (amount !== undefined && type === 'expiry') throw new WrongUsage('--amount does not go with an expiry');
  if (flags.partial && type !== 'clearing') throw new WrongUsage('--partial goes with --type clearing');
  if (flags.notForced) throw new WrongUsage('--not-forced goes with --type purchase');
  if (networkAuthorizationId === undefined && (type === 'reversal' || type === 'expiry')) {
    throw new WrongUsage('give --network-authorization-id');
  }
  const message = {
    partnerId: card.partner_id,
    mode: card.mode,
    cardId: card.id,
    networkCardId: null,
    type,
    messageId,
    networkAuthorizationId: networkAuthorizationId ?? (isRequest ? messageId : null),
    amountCents: amount ?? null,
    isFinal: !flags.partial,
    merchant,
  };
  const { authorizationTtlMs } = session.config;
  const outcome = await sendAuthorizationEvent(await session.operator(), message, authorizationTtlMs);
  const { transaction, authorization, replayed } = outcome;
  const value =
    type === 'clearing' && transaction !== null
      ? presentTransaction(transaction)
      : authorization && presentAuthorization(authorization);
  if (value === null) throw new Error('a message has changed no authorization');
  return { value, note: replayed ? 'It was already sent; nothing has changed.' : undefined };
}
