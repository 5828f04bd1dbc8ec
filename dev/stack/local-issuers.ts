import { startLocalIncrease } from '../increase/local-increase.ts';

/** What `npm start -- --network NAME` can start. */
export const LOCAL_ISSUERS = { increase: startLocalIncrease } as const;
export type LocalIssuerName = keyof typeof LOCAL_ISSUERS;
