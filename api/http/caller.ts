import type { Tenant } from '../../domain/tenant.ts';

/** Who a request speaks for: an account in one mode, by one of its keys. */
export interface Caller extends Tenant {
  partnerName: string;
  keyId: string;
}
