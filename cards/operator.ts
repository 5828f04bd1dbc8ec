import { type Command, Option } from 'commander';
import { z } from 'zod';
import { readPartner } from '../accounts/operator-reads.ts';
import { readMakers } from '../accounts/request-operator-reads.ts';
import { CardStatus, type StatusChangeOperation } from '../domain/card-status.ts';
import { NetworkId } from '../domain/fields.ts';
import { isId } from '../domain/ids.ts';
import { WrongUsage } from '../operator/errors.ts';
import { read, Text } from '../operator/flag-values.ts';
import { listNewest, type Verbs, withLimit, workflowOf } from '../operator/verbs.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readCard, readCards } from './operator-reads.ts';
import { type ListedTransfer, readTransfers } from './transfers/operator-reads.ts';
import { waitingFor } from './waiting-operator.ts';

interface Hold {
  created: string;
  id: string;
  held_amount: number;
  expires_at: string | null;
  merchant: { name: string | null };
}

/** @param readHolds reads the authorizations that hold a card's balance, newest first */
export function cardNoun(
  card: Command,
  { session, verb, examples, err, resolveWaitMs }: Verbs,
  readHolds: (
    orm: Orm,
    page: { cardId: string; status: 'pending'; before: null; limit: number },
  ) => Promise<Hold[]>,
): void {
  card.addHelpText('after', examples('card list --partner prt_01k0…', 'card block --help'));

  const list = card
    .command('list')
    .description('cards, newest first')
    .option('--partner <id>', 'only those of this partner', read(Text(100)))
    .option('--external-ref <ref>', 'only those with this external_ref', read(Text(255)))
    .option('--status <status>', 'only those with this status', read(StatusName))
    .option('--before <id>', 'only those older than this card: the next page', read(CardId));
  withLimit(list)
    .addHelpText(
      'after',
      examples(
        'card list --partner prt_01k0… --status active',
        'card list --external-ref order-4711',
        'card list --status funding_pending --before card_01k0…',
      ),
    )
    .action(
      verb(async ({ partner = null, externalRef = null, status = null, before = null, limit }: ListFlags) => {
        const orm = await session.orm();
        if (partner !== null) await readPartner(orm, partner);
        return listNewest(err, {
          noun: 'card',
          columns: COLUMNS,
          limit,
          isPaged: true,
          readNewest: (atMost) =>
            readCards(orm, { partnerId: partner, externalRef, status, before, limit: atMost }),
        });
      }),
    );

  card
    .command('show')
    .description(
      "a card, its balance, what holds it, its newest top-ups and withdrawals and its workflow; not the cardholder's data",
    )
    .argument('<id>', 'of the card')
    .addHelpText('after', examples('card show card_01k0…'))
    .action(
      verb(async (id: string) => {
        const orm = await session.orm();
        const value = await readCard(orm, id);
        const makers = await readMakers(orm, [id]);
        const page = { before: null, limit: MAX_SHOWN + 1 };
        const topUps = await readTransfers(orm, 'topup', { cardId: id }, page);
        const withdrawals = await readTransfers(orm, 'withdrawal', { cardId: id }, page);
        const pending = await readHolds(orm, { ...page, cardId: id, status: 'pending' });
        const sayMore = (shown: readonly unknown[], what: string, command: string) => {
          if (shown.length <= MAX_SHOWN) return;
          err(`It has more than ${MAX_SHOWN} ${what}: "operator ${command}" has all of them.\n`);
        };
        sayMore(pending, 'pending authorizations', `authorization list --card ${id} --status pending`);
        sayMore(topUps, 'top-ups', `topup list --card ${id}`);
        sayMore(withdrawals, 'withdrawals', `withdrawal list --card ${id}`);
        return {
          value: {
            ...value,
            request: makers.get(id) ?? null,
            pending_authorizations: pending.slice(0, MAX_SHOWN).map(presentHold),
            topups: topUps.slice(0, MAX_SHOWN).map(presentTransfer),
            withdrawals: withdrawals.slice(0, MAX_SHOWN).map(presentTransfer),
            waiting:
              value.status === 'funding_pending'
                ? await waitingFor(session, 'card', value, session.config.issuanceDeadlineMs)
                : null,
            ...(await workflowOf(session, value)),
          },
        };
      }),
    );

  card
    .command('resolve')
    .description(
      'resolve an issuance that is past its deadline, once you know the outcome from the network; or give an ' +
        'active card its id at the network',
    )
    .argument('<id>', 'of the card')
    .addOption(new Option('--issued', 'the network issued the card: it becomes active').conflicts('failed'))
    .option('--failed', 'the network did not issue the card: it fails and its money is released')
    .option(
      '--network-card-id <id>',
      "with --issued: the card's id at the network, if the network cannot be asked for it",
      read(NetworkId),
    )
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples(
        'attention list',
        'card resolve card_01k0… --failed --reason "the network has no such card, ticket 4711"',
        'card resolve card_01k0… --issued --network-card-id 4f1c… --reason "by telephone, ticket 4711"',
      ),
    )
    .action(
      verb(async (id: string, { issued, reason, failed, networkCardId }: ResolveFlags) => {
        if (!issued && !failed) throw new WrongUsage('give --issued or --failed');
        if (failed && networkCardId !== undefined) {
          throw new WrongUsage('--network-card-id goes with --issued: a failed card has no id');
        }
        const decision = {
          outcome: issued ? ('issued' as const) : ('failed' as const),
          networkCardId,
        };
        const { resolveCard } = await import('./resolve-operator.ts');
        return { value: await resolveCard(session, id, { ...decision, reason }, resolveWaitMs) };
      }),
    );

  for (const [name, operation, description] of STATUS_CHANGES) {
    card
      .command(name)
      .description(description)
      .argument('<id>', 'of the card')
      .requiredOption('--reason <reason>', 'why, for the audit log', read(Text(500)))
      .addHelpText('after', examples(`card ${name} card_01k0… --reason "key leaked, ticket 4711"`))
      .action(
        verb(async (cardId: string, { reason }: { reason: string }) => {
          const { changeCardStatusByHand: changeCardStatus } = await import('./change-status-operator.ts');
          return { value: await changeCardStatus(session, { cardId, operation, reason }, resolveWaitMs) };
        }),
      );
  }

  card
    .command('dismiss')
    .description(
      'take a contradiction of the card network off "attention list", once you have settled it there; it changes nothing else',
    )
    .argument('<id>', 'of the card')
    .requiredOption('--reason <reason>', 'how you settled it, for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples('card dismiss card_01k0… --reason "the network closed the card, ticket 4711"'),
    )
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        const { decideContradiction } = await import('./late-decisions.ts');
        await decideContradiction(await session.operator(), {
          kind: 'card',
          id,
          outcome: 'dismissed',
          reason,
        });
        return { value: { id, dismissed: true } };
      }),
    );
}

const STATUS_CHANGES: readonly [verb: string, StatusChangeOperation, description: string][] = [
  ['freeze', 'freeze_card', 'freeze an active card, as the partner could: authorizations decline'],
  ['unfreeze', 'unfreeze_card', 'unfreeze a frozen card, as the partner could'],
  [
    'block',
    'block_card',
    'block a card for ever, as the partner could: its balance goes back to the prepaid balance',
  ],
];

/** How many of each kind `card show` has. */
const MAX_SHOWN = 20;

/** What `card show` says of a pending authorization. */
function presentHold({ created, id, held_amount, expires_at, merchant }: Hold) {
  return { created, id, held_amount, expires_at, merchant: merchant.name };
}

/** What `card show` says of a top-up or a withdrawal. */
function presentTransfer(transfer: ListedTransfer) {
  return {
    created: transfer.created,
    id: transfer.id,
    status: transfer.status,
    amount: transfer.amount,
    ...(transfer.object === 'topup' && { total_debited: transfer.total_debited }),
    failure_code: transfer.failure_code,
    request_id: transfer.request_id,
    idempotency_key: transfer.idempotency_key,
  };
}

const COLUMNS = 'created id partner_name mode status external_ref funding last4 failure_code'.split(' ');
const StatusName = z.enum(CardStatus.options, `must be one of ${CardStatus.options.join(', ')}`);
const CardId = z.string().refine((text) => isId('card', text), 'must be the id of a card: card_01k0…');

interface ListFlags {
  partner?: string | null;
  externalRef?: string | null;
  status?: CardStatus | null;
  before?: string | null;
  limit?: number;
}

interface ResolveFlags {
  issued?: true;
  failed?: true;
  networkCardId?: string;
  reason: string;
}
