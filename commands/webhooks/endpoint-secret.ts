import type { KeyRing } from '../../crypto/key-ring.ts';

interface EndpointKey {
  partner_id: string;
  mode: string;
}

/** A webhook secret lies sealed in its endpoint's row, bound to it. */
export const sealEndpointSecret = (ring: KeyRing, endpoint: EndpointKey, secret: string): Buffer =>
  ring.seal(secret, boundTo(endpoint));

export const openEndpointSecret = (ring: KeyRing, endpoint: EndpointKey, sealed: Buffer): string =>
  ring.open(sealed, boundTo(endpoint));

const boundTo = ({ partner_id, mode }: EndpointKey) => `webhook-endpoint/${partner_id}/${mode}`;
