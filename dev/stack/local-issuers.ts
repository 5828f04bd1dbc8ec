import { startLocalIncrease } from '../increase/local-increase.ts';
import { startLocalLithic } from '../lithic/local-lithic.ts';

/** What `npm start -- --network NAME` can start. */
export const LOCAL_ISSUERS = { increase: startLocalIncrease, lithic: startLocalLithic } as const;
export type LocalIssuerName = keyof typeof LOCAL_ISSUERS;
