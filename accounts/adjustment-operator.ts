import { type Command, Option } from 'commander';
import { read, Text } from '../operator/flag-values.ts';
import { presentAmounts } from '../operator/render.ts';
import { listNewest, type Verbs, withLimit } from '../operator/verbs.ts';
import { type AdjustmentRequestResource, readRequest, readRequests } from './adjustment-operator-reads.ts';
import { approveAdjustment, rejectAdjustment } from './decide-adjustment.ts';

export function adjustmentNoun(adjustment: Command, { session, verb, examples, err }: Verbs): void {
  adjustment.addHelpText(
    'after',
    examples('adjustment list --status pending', 'adjustment approve adj_01k0…'),
  );

  const list = adjustment
    .command('list')
    .description('large adjustments that wait for a second operator, or were decided, newest first')
    .addOption(
      new Option('--status <status>', 'only those').choices(['pending', 'approved', 'rejected'] as const),
    )
    .addHelpText('after', examples('adjustment list', 'adjustment list --status pending'));
  withLimit(list).action(
    verb(async ({ status, limit }: { status?: AdjustmentRequestResource['status']; limit?: number }) => {
      const orm = await session.orm();
      const found = await listNewest(err, {
        noun: 'adjustment',
        columns: [
          'id',
          'status',
          'partner_name',
          'mode',
          'amount',
          'reason',
          'requested_by',
          'decided_by',
          'created',
        ],
        limit,
        readNewest: (atMost) => readRequests(orm, { status: status ?? null, limit: atMost }),
      });
      const { note: _, ...shown } = found;
      return Array.isArray(found.value) && found.value.length === 0 ? found : shown;
    }),
  );

  adjustment
    .command('approve')
    .description('approve an adjustment that another operator asked for, and book it')
    .argument('<id>', 'of the adjustment')
    .addHelpText('after', examples('adjustment approve adj_01k0…'))
    .action(
      verb(async (id: string) => {
        const { balance } = await approveAdjustment(await session.operator(), id);
        const request = await readRequest(await session.orm(), id);
        return { value: { ...request, balance: presentAmounts(balance) } };
      }),
    );

  adjustment
    .command('reject')
    .description('reject an adjustment that waits, so that it is never booked')
    .argument('<id>', 'of the adjustment')
    .requiredOption('--reason <reason>', 'why, for whoever asked and for the audit log', read(Text(500)))
    .addHelpText('after', examples('adjustment reject adj_01k0… --reason "the wire was for somebody else"'))
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        await rejectAdjustment(await session.operator(), id, reason);
        return { value: await readRequest(await session.orm(), id) };
      }),
    );
}
