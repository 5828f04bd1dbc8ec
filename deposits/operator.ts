import { type Command, Option } from 'commander';
import { z } from 'zod';
import { readPartner } from '../accounts/reads.ts';
import { type DepositDecision, DepositStatus, type WhyNotResolved } from '../domain/deposit.ts';
import { Refusal } from '../domain/refusal.ts';
import { WrongUsage } from '../operator/errors.ts';
import { read, Text, WholeNumber } from '../operator/flag-values.ts';
import type { Session } from '../operator/session.ts';
import { listNewest, type Verbs, withLimit } from '../operator/verbs.ts';
import { notifyDeposits, notifyEvents } from '../platform/db/notifications.ts';
import { type DepositDetail, readDeposit, readDeposits } from './operator-reads.ts';
import { resolveDeposit } from './resolve.ts';

const COLUMNS = 'created id partner_name status amount received_amount credited_amount expires_at'.split(' ');
const StatusName = z.enum(DepositStatus.options, `must be one of ${DepositStatus.options.join(', ')}`);

export function depositNoun(deposit: Command, verbs: Verbs): void {
  deposit.addHelpText(
    'after',
    verbs.examples('deposit list --status needs_review', 'deposit show dep_01k0…'),
  );
  listVerb(deposit, verbs);
  showVerb(deposit, verbs);
  resolveVerb(deposit, verbs);
}

interface ListFlags {
  status?: DepositStatus | null;
  partner?: string | null;
  limit?: number;
}

function listVerb(deposit: Command, { session, verb, examples, err }: Verbs): void {
  const list = deposit
    .command('list')
    .description('deposit addresses and what arrived at them, newest first')
    .option('--status <status>', 'only those with this status', read(StatusName))
    .option('--partner <id>', 'only those of this partner', read(Text(100)));
  withLimit(list)
    .addHelpText(
      'after',
      examples('deposit list --status needs_review', 'deposit list --partner prt_01k0… --limit 1000'),
    )
    .action(
      verb(async ({ status = null, partner = null, limit }: ListFlags) => {
        const orm = await session.orm();
        if (partner !== null) await readPartner(orm, partner);
        return listNewest(err, {
          noun: 'deposit',
          columns: COLUMNS,
          limit,
          readNewest: (atMost) => readDeposits(orm, { status, partnerId: partner, limit: atMost }),
        });
      }),
    );
}

function showVerb(deposit: Command, { session, verb, examples }: Verbs): void {
  deposit
    .command('show')
    .description('a deposit, its payments and why they are in review, the decisions on it, and its workflow')
    .argument('<id>', 'of the deposit')
    .addHelpText('after', examples('deposit show dep_01k0…'))
    .action(
      verb(async (id: string) => {
        const value = await readDeposit(await session.orm(), id);
        return { value: { ...value, workflow_status: await session.workflowStatus(value.workflow_id) } };
      }),
    );
}

interface ResolveFlags {
  credit?: true;
  returned?: true;
  reason: string;
  ifVersion?: number;
}

function resolveVerb(deposit: Command, { session, verb, examples }: Verbs): void {
  deposit
    .command('resolve')
    .description('resolve the payments in review, once you have seen them on the chain')
    .argument('<id>', 'of the deposit')
    .addOption(
      new Option('--credit', 'credit what arrived and is not credited yet, rounded down to a cent').conflicts(
        'returned',
      ),
    )
    .option('--returned', 'it was sent back, or should not be credited: the balance does not change')
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .option(
      '--if-version <number>',
      'only if the deposit still has this version, as "deposit show" gives it; needed to credit what nodes disagree on',
      read(WholeNumber(z.number().min(1).max(2_147_483_647))),
    )
    .addHelpText(
      'after',
      examples(
        'attention list',
        'deposit resolve dep_01k0… --credit --if-version 3 --reason "the partner sent it in two parts, ticket 4711"',
        'deposit resolve dep_01k0… --returned --reason "sent back in transaction 7c1f…, ticket 4712"',
      ),
    )
    .action(
      verb(async (id: string, { credit, returned, reason, ifVersion }: ResolveFlags) => {
        if (!credit && !returned) throw new WrongUsage('give --credit or --returned');
        const { deposit: value, creditedCents } = await resolve(session, id, {
          outcome: credit ? 'credited' : 'returned',
          reason,
          version: ifVersion,
        });
        const done = credit ? `${creditedCents} cents were added to the balance` : 'Nothing was credited';
        return { value, note: `${done}; the deposit is ${value.status}.` };
      }),
    );
}

/**
 * Resolves the payments of a deposit that are in review. A worker tells its workflow, as it does of every change.
 * @returns the deposit as it is then
 * @throws Refusal if nothing is in review, the deposit has changed, or the payments can't be credited.
 */
async function resolve(
  session: Session,
  depositId: string,
  decision: DepositDecision,
): Promise<{ deposit: DepositDetail; creditedCents: number }> {
  const orm = await session.orm();
  const verdict = await resolveDeposit(await session.operator(), { depositId, ...decision });
  // Refuses an unknown id.
  const deposit = await readDeposit(orm, depositId);
  if (verdict === null || !verdict.resolved)
    throw new Refusal(`Nothing was changed. ${whyNot(deposit, verdict?.because ?? 'nothing_in_review')}`);
  if (verdict.repeated)
    throw new Refusal(`You have already resolved ${depositId} this way; nothing was changed.`);
  await notifyEvents(orm);
  await notifyDeposits(orm);
  return { deposit, creditedCents: verdict.creditedCents };
}

function whyNot({ id, status, version }: DepositDetail, because: WhyNotResolved): string {
  switch (because) {
    case 'nothing_in_review':
      return `${id} has no payment in review, it is ${status}: see "operator deposit show ${id}".`;
    case 'changed_meanwhile':
      return `${id} has changed and is now at version ${version}: check it with "operator deposit show ${id}", then decide again.`;
    case 'version_needed':
      return (
        `Nodes disagree on a payment of ${id}: look it up in an explorer, see "operator deposit show ${id}", and give ` +
        `--if-version ${version} if it should be credited.`
      );
    case 'below_a_cent':
      return (
        `Less than a cent of what arrived for ${id} is not credited yet. Use --returned: the payment stays recorded, and ` +
        'nothing is owed.'
      );
    case 'past_the_largest_balance':
      return 'The balance would exceed its maximum: send the payment back, and use --returned.';
    case 'unreadable_reason':
      return 'The reason must be 1 to 500 characters on one line.';
  }
}
