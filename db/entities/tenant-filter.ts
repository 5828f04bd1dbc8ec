import type { Mode } from '../../domain/mode.ts';

/** Whose rows a query may see: an account, in one mode. */
export interface Tenant {
  partnerId: string;
  mode: Mode;
}

export const TENANT_FILTER = 'tenant';

/**
 * On by default on every entity that belongs to an account: a query without the tenant throws instead of reading
 * somebody else's rows. Operators' reads turn it off by name.
 */
export const tenantFilter = {
  [TENANT_FILTER]: {
    name: TENANT_FILTER,
    default: true,
    cond: (args: Partial<Tenant> | undefined) => {
      if (!args?.partnerId || !args.mode)
        throw new Error('this entity is only read with a tenant: em.setFilterParams');
      return { partnerId: args.partnerId, mode: args.mode };
    },
  },
};
