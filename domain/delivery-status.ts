import { z } from 'zod';

/** How far an event got (decisions.md, "Event"). */
export const DeliveryStatus = z.enum([
  'pending',
  'delivered',
  'retrying',
  'given_up',
  'parked',
  'no_endpoint',
]);
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;
