import { sql } from 'kysely';
import { DEFAULT_FEE_PLAN, FeePlan } from '../domain/fees.ts';
import { Refusal, unknownId } from '../domain/refusal.ts';
import { completeControls, type SpendingControls } from '../domain/spending-controls.ts';
import { newId } from '../platform/crypto/new-id.ts';
import { type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import { AccountLimits, DEFAULT_LIMITS } from './limits-rules.ts';
import { AccountUsageEntity, type Partner, PartnerEntity } from './tables.ts';

interface NewPartner {
  name: string;
  secureDetailsEnabled: boolean;
}

/** Opens an account in both modes, with the platform's fees and limits. It has no API keys yet. */
export function createPartner(
  { orm, actor }: Operator,
  { name, secureDetailsEnabled }: NewPartner,
): Promise<{ id: string; name: string }> {
  return transaction(orm, async (tx) => {
    const id = newId('prt');
    tx.create(PartnerEntity, { id, name, secureDetailsEnabled, createdAt: new Date() });
    await tx.flush();
    tx.create(AccountUsageEntity, { partnerId: id, mode: 'test' });
    tx.create(AccountUsageEntity, { partnerId: id, mode: 'live' });
    recordAudit(tx, { actor, action: 'partner.create', subject: id, detail: { name, secureDetailsEnabled } });
    return { id, name };
  });
}

export interface PartnerChanges {
  name?: string;
  secureDetailsEnabled?: boolean;
}

/** @throws Refusal if there is no such account. */
export const updatePartner = (operator: Operator, partnerId: string, changes: PartnerChanges) =>
  change(operator, partnerId, 'partner.update', (partner) => {
    const { name, secureDetailsEnabled } = partner;
    const after = { name, secureDetailsEnabled, ...changes };
    Object.assign(partner, after);
    return { before: { name, secureDetailsEnabled }, after };
  });

/**
 * Changes fees of an account, which has its own fee plan from then on. Fees that `changes` leaves out keep
 * their value. The plan applies from the next quote on. Operations that already hold money keep their fees.
 * @throws Refusal if there is no such account.
 */
export const negotiateFees = (operator: Operator, partnerId: string, changes: Partial<FeePlan>) =>
  change(operator, partnerId, 'partner.fees', (partner) => {
    const before = partner.feePlan ?? DEFAULT_FEE_PLAN;
    partner.feePlan = FeePlan.parse({ ...before, ...changes });
    return { before, after: partner.feePlan };
  });

/**
 * Changes limits of an account in both modes, which has its own limits from then on. Limits that `changes`
 * leaves out keep their value.
 * @throws Refusal if there is no such account, or the smallest card would be larger than the largest.
 */
export const negotiateLimits = (operator: Operator, partnerId: string, changes: Partial<AccountLimits>) =>
  change(operator, partnerId, 'partner.limits', (partner) => {
    const before = partner.limits ?? DEFAULT_LIMITS;
    const after = AccountLimits.parse({ ...before, ...changes });
    if (after.minCardCents > after.maxCardCents) {
      throw new Refusal(
        `The smallest card (${after.minCardCents}) would be larger than the largest (${after.maxCardCents}): ` +
          'give --min-card and --max-card together.',
      );
    }
    partner.limits = after;
    return { before, after };
  });

/**
 * Replaces an account's spending controls, which hold for each of its cards by itself, in both modes, from
 * the next decision on.
 * @param controls null removes them
 * @throws Refusal if there is no such account.
 */
export const controlSpending = (operator: Operator, partnerId: string, controls: SpendingControls | null) =>
  change(operator, partnerId, 'partner.controls', (partner) => {
    const before = completeControls(partner.spendingControls ?? null);
    partner.spendingControls = controls;
    return { before, after: controls };
  });

/**
 * Suspends an account: every process refuses all its keys within 5 s, and its workbench sessions end. What has
 * begun goes on: workflows, the network's transactions, deposits, webhooks.
 * @returns false if it was suspended already, so that nothing changed
 * @throws Refusal if there is no such account.
 */
export const suspendPartner = (operator: Operator, partnerId: string, reason: string) =>
  change(operator, partnerId, 'partner.suspend', async (partner, tx) => {
    if (partner.suspendedAt) return null;
    partner.suspendedAt = new Date();
    partner.suspensionReason = reason;
    await endSessions(tx, { partnerId });
    return { reason };
  });

const endSessions = writeStatement(
  (_, { partnerId }: { partnerId: string }) => sql`
  UPDATE workbench_session SET ended_at = now() WHERE partner_id = ${partnerId} AND ended_at IS NULL`,
  { acrossTenants: 'operator' },
);

/**
 * Ends a suspension: the account's keys that are not revoked work again within 5 s.
 * @returns false if it was not suspended, so that nothing changed
 * @throws Refusal if there is no such account.
 */
export const resumePartner = (operator: Operator, partnerId: string, reason: string) =>
  change(operator, partnerId, 'partner.resume', (partner) => {
    if (!partner.suspendedAt) return null;
    const suspendedAt = partner.suspendedAt.toISOString();
    partner.suspendedAt = null;
    partner.suspensionReason = null;
    return { reason, suspendedAt };
  });

type Detail = Record<string, unknown> | null;

/**
 * @param apply changes the account, and returns what the audit log says; null if nothing changes @returns
 * whether it did
 */
function change(
  { orm, actor }: Operator,
  partnerId: string,
  action: string,
  apply: (partner: Partner, tx: Transactor) => Detail | Promise<Detail>,
): Promise<boolean> {
  return transaction(orm, async (tx) => {
    const detail = await apply(await lockPartner(tx, partnerId), tx);
    if (detail !== null) recordAudit(tx, { actor, action, subject: partnerId, detail });
    return detail !== null;
  });
}

/**
 * Reads an account and locks it against other operators' changes until the transaction ends. Issuances do not
 * wait for this lock.
 * @throws Refusal if there is no such account.
 */
export async function lockPartner(tx: Transactor, partnerId: string): Promise<Partner> {
  await lock(tx, { partnerId });
  const partner = await tx.findOne(PartnerEntity, partnerId);
  if (partner === null) throw unknownId('prt', partnerId, 'run "operator partner list"');
  return partner;
}

const lock = writeStatement((db, { partnerId }: { partnerId: string }) =>
  db.selectFrom('partner').select('id').where('id', '=', partnerId).forNoKeyUpdate(),
);
