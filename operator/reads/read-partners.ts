import { unknownId } from '../../commands/idempotency/refusal.ts';
import { type Partner, PartnerEntity } from '../../db/entities/accounts.ts';
import type { Orm } from '../../db/orm.ts';
import { DEFAULT_FEE_PLAN } from '../../domain/fees.ts';
import { DEFAULT_LIMITS } from '../../domain/limits.ts';
import { FEE_FIELDS, LIMIT_FIELDS, presentPlan } from '../plan-fields.ts';

/** An account as operators see it; amounts in cents. */
export interface PartnerResource {
  id: string;
  object: 'partner';
  name: string;
  secure_details: boolean;
  fees: Record<string, unknown>;
  limits: Record<string, unknown>;
  created: string;
}

/** Newest first. */
export async function readPartners(orm: Orm): Promise<PartnerResource[]> {
  const partners = await orm.em.fork().findAll(PartnerEntity, { orderBy: { id: 'desc' } });
  return partners.map(presentPartner);
}

/** @throws Refusal where there is none. */
export async function readPartner(orm: Orm, partnerId: string): Promise<PartnerResource> {
  const partner = await orm.em.fork().findOne(PartnerEntity, partnerId);
  if (partner === null) throw unknownId('prt', partnerId, 'run "operator partner list"');
  return presentPartner(partner);
}

function presentPartner(partner: Partner): PartnerResource {
  return {
    id: partner.id,
    object: 'partner',
    name: partner.name,
    secure_details: partner.secureDetailsEnabled,
    fees: presentPlan(FEE_FIELDS, partner.feePlan ?? null, DEFAULT_FEE_PLAN),
    limits: presentPlan(LIMIT_FIELDS, partner.limits ?? null, DEFAULT_LIMITS),
    created: partner.createdAt.toISOString(),
  };
}
