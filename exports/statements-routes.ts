import { z } from 'zod';
import { declare, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import { readAccountMonth } from '../ledger/account-month.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { STATEMENT } from './examples.ts';
import { presentStatement, StatementResource } from './statement-resource.ts';

const getStatement = declare({
  method: 'get',
  path: '/statements/:month',
  scope: 'balance:read',
  operationId: 'statements.get',
  summary: 'Retrieve a statement',
  description:
    'What changed your balance and the money on your cards in a month, by type. The current month is shown up to now.',
  query: z.strictObject({}),
  responses: { 200: StatementResource },
  examples: { 200: STATEMENT },
  errors: ['statement_not_found'],
});

export const statements = resource({ getStatement }, ({ readList }: { readList: ReadList }) => ({
  async getStatement({ caller, params: { month = '' } }) {
    const found = await readList((from) => readAccountMonth(from.em.fork(), caller, month));
    if (found === null) throw new ApiError('statement_not_found');
    return { status: 200, body: presentStatement(month, caller.mode, found) };
  },
}));
