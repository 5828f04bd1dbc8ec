import { z } from 'zod';
import type { Orm } from '../../db/orm.ts';
import { BalanceResource, presentBalance } from '../../domain/balance-resource.ts';
import { readBalance } from '../../ledger/read-balance.ts';
import { route } from '../route.ts';

export const getBalance = ({ orm }: { orm: Orm }) =>
  route({
    method: 'get',
    path: '/balance',
    summary: "The balance of the key's mode",
    query: z.strictObject({}),
    responses: { 200: BalanceResource },
    handle: async ({ caller }) => ({
      status: 200,
      body: presentBalance(caller.mode, await readBalance(orm.em.fork(), caller.partnerId, caller.mode)),
    }),
  });
