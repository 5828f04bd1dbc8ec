import { z } from 'zod';
import { CardStatus } from '../domain/card-status.ts';
import { ObjectType } from '../domain/fields.ts';
import { Mode } from '../domain/mode.ts';

/** What waits is counted up to this. */
export const MAX_COUNTED = 1_000;

const Count = z.int().min(0);

const OverviewDay = z
  .object({
    date: z.iso.date().describe("In UTC and your account's time."),
    closing_balance: z.int().describe('The total of your balance at its end, or now, in cents.'),
    spent: Count.describe('What cards paid, in cents.'),
    refunded: Count.describe('What cards got back from merchants, in cents.'),
  })
  .meta({ id: 'OverviewDay', description: 'A day of your account.' });

/** An account at a glance (docs/partners/workbench.md). */
export const OverviewResource = z
  .object({
    object: ObjectType('overview'),
    cards: z
      .object(
        Object.fromEntries(
          CardStatus.options.map((status) => [
            status,
            Count.describe(`Cards with the status \`${status}\`.`),
          ]),
        ) as Counts,
      )
      .meta({ id: 'CardCounts', description: 'How many cards have each status.' }),
    days: z.array(OverviewDay).describe('The last 30 days with today, oldest first.'),
    pending_operations: Count.describe(
      `How many operations are in progress or await our review; ${MAX_COUNTED}: that many or more.`,
    ),
    deposits_waiting: Count.describe(
      `How many deposits wait for their payment, its confirmation or our review; ${MAX_COUNTED}: that many or more.`,
    ),
    mode: Mode,
  })
  .meta({ id: 'Overview', description: 'Your account at a glance.' });
export type OverviewResource = z.infer<typeof OverviewResource>;

type Counts = Record<CardStatus, typeof Count>;
