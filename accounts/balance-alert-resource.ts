import { z } from 'zod';
import { AmountCents, ObjectType } from '../domain/fields.ts';
import { Mode } from '../domain/mode.ts';

/** Body of PUT /balance/alert. */
export const BalanceAlertRequest = z
  .strictObject({
    threshold: AmountCents.nullable().describe(
      'We tell you when your available balance falls below this, in cents. Null turns the alert off.',
    ),
  })
  .meta({ id: 'SetBalanceAlertRequest', description: 'When to tell you that your balance is low.' });
export type BalanceAlertRequest = z.infer<typeof BalanceAlertRequest>;

/** When an account is told that its balance is low (docs/partners/balance.md). */
export const BalanceAlertResource = z
  .object({
    object: ObjectType('balance_alert'),
    threshold: z
      .int()
      .min(1)
      .nullable()
      .describe('`balance.low` is sent when your available balance falls below this, in cents. Null: off.'),
    mode: Mode,
  })
  .meta({ id: 'BalanceAlert', description: 'When we tell you that your balance is low.' });
export type BalanceAlertResource = z.infer<typeof BalanceAlertResource>;
