import { z } from 'zod';
import type { Orm } from '../../db/orm.ts';
import { readBalance } from '../../ledger/read-balance.ts';
import { BalanceResource, presentBalance } from '../../resources/balance.ts';
import { route } from '../http/route.ts';
import * as EXAMPLES from '../openapi/examples.ts';

export const getBalance = ({ orm }: { orm: Orm }) =>
  route({
    method: 'get',
    path: '/balance',
    operationId: 'balance.get',
    summary: 'Retrieve your balance',
    description: "The balance of the key's mode.",
    query: z.strictObject({}),
    responses: { 200: BalanceResource },
    examples: { 200: EXAMPLES.BALANCE_WITH_HOLD },
    handle: async ({ caller }) => ({
      status: 200,
      body: presentBalance(caller.mode, await readBalance(orm.em.fork(), caller.partnerId, caller.mode)),
    }),
  });
