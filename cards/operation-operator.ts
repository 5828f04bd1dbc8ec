import type { Command } from 'commander';
import { z } from 'zod';
import { readPartner } from '../accounts/reads.ts';
import { isId } from '../domain/ids.ts';
import { Mode } from '../domain/mode.ts';
import { read, Text } from '../operator/flag-values.ts';
import { listNewest, type Verbs, withLimit } from '../operator/verbs.ts';
import { OperationStatus } from '../requests/rules.ts';
import { readOperation, readOperations } from './operation-operator-reads.ts';

const StatusName = z.enum(OperationStatus.options, `must be one of ${OperationStatus.options.join(', ')}`);
const ModeName = z.enum(Mode.options, 'must be test or live');
const OperationId = z.string().refine((text) => isId('op', text), 'must be the id of an operation: op_01k0…');
const COLUMNS = ['created', 'id', 'mode', 'type', 'status', 'resource', 'response_status', 'idempotency_key'];

interface ListFlags {
  partner: string;
  mode?: Mode;
  status?: OperationStatus;
  before?: string;
  limit?: number;
}

export function operationNoun(operation: Command, { session, verb, examples, err }: Verbs): void {
  operation.addHelpText(
    'after',
    examples(
      'operation show op_01k0…',
      'operation list --partner prt_01k0… --mode live --status awaiting_review',
    ),
  );

  const list = operation
    .command('list')
    .description("a partner's operations of the last 31 days, newest first")
    .requiredOption('--partner <id>', 'of this partner', read(Text(100)))
    .option('--mode <mode>', 'only those in this mode', read(ModeName))
    .option('--status <status>', 'only those with this status', read(StatusName))
    .option('--before <id>', 'only those older than this one: the next page', read(OperationId));
  withLimit(list)
    .addHelpText('after', examples('operation list --partner prt_01k0… --status in_progress'))
    .action(
      verb(async ({ partner, mode, status, before, limit }: ListFlags) => {
        const orm = await session.orm();
        await readPartner(orm, partner);
        const page = {
          partnerId: partner,
          mode: mode ?? null,
          status: status ?? null,
          before: before ?? null,
        };
        return listNewest(err, {
          noun: 'operation',
          columns: COLUMNS,
          limit,
          isPaged: true,
          readNewest: (atMost) => readOperations(orm, { ...page, limit: atMost }),
        });
      }),
    );

  operation
    .command('show')
    .description('what became of a request, by the Operation-Id of its responses')
    .argument('<id>', 'of the operation')
    .addHelpText('after', examples('operation show op_01k0…'))
    .action(verb(async (id: string) => ({ value: await readOperation(await session.orm(), id) })));
}
