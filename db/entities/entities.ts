import { AccountUsageEntity } from './account-usage.ts';
import { ApiKeyEntity } from './api-key.ts';
import { AuditEntryEntity } from './audit-entry.ts';
import { ChainScanEntity, DepositEntity, DepositPaymentEntity } from './deposit.ts';
import { PartnerEntity } from './partner.ts';
import { ProductEntity } from './product.ts';

/** Every entity the ORM maps. */
export const ENTITIES = [
  AccountUsageEntity,
  ApiKeyEntity,
  AuditEntryEntity,
  ChainScanEntity,
  DepositEntity,
  DepositPaymentEntity,
  PartnerEntity,
  ProductEntity,
];
