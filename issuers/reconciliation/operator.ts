import type { Command } from 'commander';
import { z } from 'zod';
import { isId } from '../../domain/ids.ts';
import { Refusal } from '../../domain/refusal.ts';
import { read, Since, Text } from '../../operator/flag-values.ts';
import type { Output } from '../../operator/render.ts';
import { listNewest, type Verbs, withLimit } from '../../operator/verbs.ts';
import { createSettlementQueue } from '../../payments/settlement-queue.ts';
import { ConfigurationError } from '../../platform/config/environment.ts';
import type { OperatorConfig } from '../../platform/config/operator.ts';
import { notifyEvents } from '../../platform/db/notifications.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { recordMeasurement } from '../../platform/monitoring/measurements.ts';
import { createLogger } from '../../platform/process/logger.ts';
import { recordAudit } from '../../requests/operator-context.ts';
import { CardNetworkUnavailable } from '../card-network.ts';
import { startLiveNetwork } from '../live-network.ts';
import { openRequestBudget } from '../request-budget.ts';
import { checkSetUp, dismissFinding, type Finding } from './findings.ts';
import { readOpenFindings } from './operator-reads.ts';
import { countReconciliation, dailyPeriod, type Reconciliation, reconcile } from './reconcile.ts';
import type { ReconciliationProblem } from './tables.ts';

const FindingId = z.string().refine((text) => isId('rec', text), 'must be the id of a finding: rec_01k0…');
const PROBLEMS = ['missing_here', 'missing_at_issuer', 'different', 'set_up'] as const;

export function networkNoun(network: Command, verbs: Verbs): void {
  network.addHelpText('after', verbs.examples('network reconcile --since 3d', 'network findings'));
  reconcileVerb(network, verbs);
  findingsVerb(network, verbs);
  dismissVerb(network, verbs);
}

function reconcileVerb(network: Command, verbs: Verbs): void {
  network
    .command('reconcile')
    .description(
      "compare cards, movements of money and transactions with the card network's own lists; books transactions that it never told us",
    )
    .option('--since <time>', 'compare what was made since then (default: a week ago)', read(Since))
    .addHelpText('after', verbs.examples('network reconcile', 'network reconcile --since 24h --json'))
    .action(verbs.verb(({ since }: { since?: Date }) => reconcileByHand(verbs, since)));
}

async function reconcileByHand(
  { session, err, reconcileGraceMs: graceMs }: Verbs,
  given: Date | undefined,
): Promise<Output> {
  const { config } = session;
  requireKeys(config);
  const { orm, ring, actor } = await session.withKeys();
  const logger = createLogger('operator', 'warn', { write: err });
  const { cardNetwork, authorizationTtlMs } = config;
  const budget = openRequestBudget(config, orm, logger);
  const live = await startLiveNetwork({ config, cardNetwork, apiUrl: null, orm, ring, budget, logger });
  if (live.network === null) throw new Refusal('CARD_NETWORK is "none": there is nothing to compare with.');
  const eventsWritten = () => {};
  const settlements = createSettlementQueue(orm, eventsWritten);
  const startedAt = new Date();
  try {
    await checkSetUp(orm, cardNetwork, live.network, logger);
    const since = given ?? (await dailyPeriod(orm, cardNetwork));
    const compared = await reconcile({
      receiving: { orm, ring, settlements, authorizationTtlMs, eventsWritten },
      network: live.network,
      cardNetwork,
      since,
      graceMs,
      signal: new AbortController().signal,
      onProgress: async () => {},
      logger,
    });
    const counts = countReconciliation(compared, startedAt);
    await recordMeasurement(orm, 'reconciliation', counts);
    await transaction(orm, async (tx) =>
      recordAudit(tx, {
        actor,
        action: 'network.reconcile',
        subject: cardNetwork,
        detail: { since: since.toISOString(), ...counts },
      }),
    );
    if (compared.booked.length > 0) await notifyEvents(orm);
    return present(compared);
  } catch (error) {
    if (!(error instanceof CardNetworkUnavailable)) throw error;
    throw new Refusal(
      `${error.message}. The lists could not be read to their end, so no difference was recorded and none has ended. Run it again: that is safe.`,
    );
  } finally {
    await live.stop();
  }
}

/** @throws ConfigurationError if the network can't be asked from here */
function requireKeys({ increase, lithic }: OperatorConfig): void {
  const missing = [
    increase?.apiKey === '' && 'INCREASE_API_KEY',
    increase?.fundingAccountId === '' && 'INCREASE_FUNDING_ACCOUNT_ID',
    lithic?.apiKey === '' && 'LITHIC_API_KEY',
  ].filter((name) => typeof name === 'string');
  if (missing.length > 0)
    throw new ConfigurationError(missing.map((name) => `${name}: is required for this command`));
}

function present({ matched, findings, booked, isTruncated }: Reconciliation): Output {
  const entries = (problem: Finding['problem']) =>
    [...findings, ...booked]
      .filter((finding) => finding.problem === problem)
      .map(({ kind, id, issuerId }) => ({ kind, id, issuer_id: issuerId }));
  const isAllDone = findings.length === 0 && !booked.some(({ id }) => id?.startsWith('nmsg_'));
  const next = isAllDone
    ? 'Nothing is left to do.'
    : 'See what to do about each with "operator attention list".';
  return {
    value: {
      matched,
      missing_here: entries('missing_here'),
      missing_at_issuer: entries('missing_at_issuer'),
      different: entries('different'),
    },
    note:
      (booked.length > 0 ? `${booked.length} transactions that we were never told were taken now. ` : '') +
      (isTruncated ? 'There is more than is shown: run it again once this is dealt with. ' : '') +
      next,
  };
}

interface FindingFlags {
  problem?: ReconciliationProblem | null;
  before?: string | null;
  limit?: number;
}

function findingsVerb(network: Command, { session, verb, examples, err }: Verbs): void {
  const findings = network
    .command('findings')
    .description('what the last reconciliation found and nobody has dismissed, newest first')
    .option('--problem <problem>', PROBLEMS.join(', '), read(z.enum(PROBLEMS)))
    .option('--before <id>', 'only those older than this one: the next page', read(FindingId));
  withLimit(findings)
    .addHelpText('after', examples('network findings --problem missing_here'))
    .action(
      verb(async ({ problem = null, before = null, limit }: FindingFlags) => {
        const orm = await session.orm();
        const list = await listNewest(err, {
          noun: 'network',
          columns: ['id', 'since', 'problem', 'kind', 'object_id', 'issuer_id', 'detail'],
          limit,
          readNewest: (atMost) => readOpenFindings(orm, { problem, before, limit: atMost }),
          isPaged: true,
        });
        return { ...list, note: 'See what to do about each with "operator attention list".' };
      }),
    );
}

function dismissVerb(network: Command, { session, verb, examples }: Verbs): void {
  network
    .command('dismiss')
    .description('say that a finding needs nothing more; it is not shown again')
    .argument('<finding>', 'id of the finding')
    .requiredOption('--reason <text>', 'why, for the audit log', read(Text(500)))
    .addHelpText('after', examples('network dismiss rec_01k0… --reason "made by hand for a test"'))
    .action(
      verb(async (findingId: string, { reason }: { reason: string }) => {
        await dismissFinding(await session.operator(), findingId, reason);
        return { value: { id: findingId, status: 'dismissed' } };
      }),
    );
}
