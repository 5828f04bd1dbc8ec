import type { KeyRing } from '../../crypto/key-ring.ts';

/** The answer of a request as it was, or will be, sent: status and the body's exact text. */
export interface StoredResponse {
  status: number;
  body: string;
}

/** Answers and requests can hold a cardholder's name: they lie sealed in the claim's row, bound to it and their part. */
export const sealRequest = (ring: KeyRing, claimId: string, request: unknown): Buffer =>
  ring.seal(JSON.stringify(request), `${claimId}/request`);

export const openRequest = (ring: KeyRing, claimId: string, sealed: Buffer): unknown =>
  JSON.parse(ring.open(sealed, `${claimId}/request`));

export const sealBody = (ring: KeyRing, claimId: string, body: string): Buffer =>
  ring.seal(body, `${claimId}/response`);

export const openBody = (ring: KeyRing, claimId: string, sealed: Buffer): string =>
  ring.open(sealed, `${claimId}/response`);
