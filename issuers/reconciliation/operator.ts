import { sql } from 'kysely';
import { Refusal } from '../../domain/refusal.ts';
import { Since } from '../../operator/flag-values.ts';
import type { Output } from '../../operator/render.ts';
import { argument, flag, list, type Noun, oneOf, reason, type Tools, verb } from '../../operator/verbs.ts';
import type { OperatorConfig } from '../../platform/config/operator.ts';
import { ConfigurationError } from '../../platform/config/read-environment.ts';
import { notifyEvents } from '../../platform/db/notifications.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { recordMeasurement } from '../../platform/monitoring/measurements.ts';
import { createLogger } from '../../platform/process/logger.ts';
import { recordAudit } from '../../requests/operator-context.ts';
import { CardNetworkUnavailable } from '../card-network.ts';
import { startLiveNetwork } from '../live-network.ts';
import { openRequestBudget } from '../request-budget.ts';
import { checkSetUp, dismissFinding, type Finding } from './findings.ts';
import { countReconciliation, dailyPeriod, type Reconciliation, reconcile } from './reconcile.ts';
import type { ReconciliationProblem } from './tables.ts';

const TO_DO = 'See what to do about each with "operator attention list".';
const PROBLEMS = ['missing_here', 'missing_at_issuer', 'different', 'set_up'] as const;

export const networkNoun: Noun = {
  reconcile: verb({
    about:
      "compare cards, movements of money and payments with the card network's own lists; corrects payments to what it has",
    takes: { since: flag('<time>', 'compare what was made since then (default: a week ago)', Since) },
    examples: ['--since 3d', '--since 24h --json', ''],
    run: ({ since }, tools) => reconcileByHand(tools, since),
  }),

  findings: list({
    about: 'what the last reconciliation found and nobody has dismissed, newest first',
    takes: { problem: flag('<problem>', PROBLEMS.join(', '), oneOf(PROBLEMS)) },
    pages: ['rec'],
    examples: ['', '--problem missing_here'],
    columns: 'id since problem kind object_id issuer_id detail',
    read: readOpenFindings,
    note: TO_DO,
  }),

  dismiss: verb({
    about: 'dismiss a finding, so that it is not shown again',
    takes: { finding: argument('id of the finding'), reason: reason('why, for the audit log') },
    examples: ['rec_01k0… --reason "made by hand for a test"'],
    async run({ finding, reason: why }, { session }) {
      await dismissFinding(await session.operator(), finding, why);
      return { value: { id: finding, status: 'dismissed' } };
    },
  }),
};

async function reconcileByHand(
  { session, err, reconcileGraceMs: graceMs }: Tools,
  given: Date | null,
): Promise<Output> {
  const { config } = session;
  requireKeys(config);
  const { orm, ring, actor } = await session.withKeys();
  const logger = createLogger('operator', 'warn', { write: err });
  const { cardNetwork, authorizationTtlMs } = config;
  const budget = openRequestBudget(config, orm, logger);
  const live = await startLiveNetwork({ config, cardNetwork, apiUrl: null, orm, ring, budget, logger });
  if (live.network === null) throw new Refusal('CARD_NETWORK is "none": there is nothing to compare with.');
  const startedAt = new Date();
  try {
    await checkSetUp(orm, cardNetwork, live.network, logger);
    const since = given ?? (await dailyPeriod(orm, cardNetwork));
    const compared = await reconcile({
      orm,
      ring,
      authorizationTtlMs,
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
    if (compared.corrected.length > 0) await notifyEvents(orm);
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

function present({ matched, findings, corrected, isTruncated }: Reconciliation): Output {
  const entries = (problem: Finding['problem']) => [
    ...findings.filter((finding) => finding.problem === problem).map(entry),
    ...corrected
      .filter((finding) => finding.problem === problem)
      .map((finding) => ({ ...entry(finding), corrected: true })),
  ];
  return {
    value: {
      matched,
      missing_here: entries('missing_here'),
      missing_at_issuer: entries('missing_at_issuer'),
      different: entries('different'),
    },
    note:
      (corrected.length > 0
        ? `${corrected.length} differences were corrected to what the card network has. `
        : '') +
      (isTruncated ? 'There is more than is shown: run it again once this is dealt with. ' : '') +
      (findings.length === 0 ? 'Nothing is left to do.' : TO_DO),
  };
}

const entry = ({ kind, id, issuerId }: Finding) => ({ kind, id, issuer_id: issuerId });

/** What the reconciliation with the card network found, and nobody has dismissed. */
interface OpenFinding {
  id: string;
  problem: ReconciliationProblem;
  kind: string;
  object_id: string | null;
  issuer_id: string | null;
  detail: string;
  since: string;
}

interface FindingFilter {
  /** Null for all. */
  problem: ReconciliationProblem | null;
  /** Those before this one; null from the newest. */
  before: string | null;
  limit: number;
}

/** Newest first. */
async function readOpenFindings(orm: Orm, filter: FindingFilter): Promise<OpenFinding[]> {
  const rows = await open(orm.em.fork(), filter);
  return rows.map((row) => ({ ...row, since: new Date(row.since).toISOString() }));
}

const open = readStatement(
  (_, { problem, before, limit }: FindingFilter) => sql<OpenFinding>`
    SELECT id, problem, kind, nullif(object_id, '') AS object_id, nullif(issuer_id, '') AS issuer_id, detail,
      first_found_at AS since
    FROM reconciliation_finding
    WHERE dismissed_at IS NULL AND (${problem}::text IS NULL OR problem = ${problem}::text)
      AND (${before}::text IS NULL OR id < ${before}::text)
    ORDER BY id DESC LIMIT ${limit}`,
);
