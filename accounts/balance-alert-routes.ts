import { z } from 'zod';
import { declare, resource } from '../api/http/route.ts';
import { readAlertThreshold } from '../ledger/balances.ts';
import type { Orm } from '../platform/db/orm.ts';
import { setBalanceAlert } from './balance-alert.ts';
import { BalanceAlertRequest, BalanceAlertResource } from './balance-alert-resource.ts';
import { BALANCE_ALERT } from './examples.ts';

const getBalanceAlert = declare({
  method: 'get',
  path: '/balance/alert',
  scope: 'balance:read',
  operationId: 'balance.getAlert',
  summary: 'Retrieve the balance alert',
  description:
    "When we tell you that the balance of the key's mode is low. Its `threshold` is null if you never set it.",
  query: z.strictObject({}),
  responses: { 200: BalanceAlertResource },
  examples: { 200: BALANCE_ALERT },
});

const setAlert = declare({
  method: 'put',
  path: '/balance/alert',
  scope: 'funding:write',
  operationId: 'balance.setAlert',
  summary: 'Set the balance alert',
  description:
    'Sets the threshold for the available balance. `balance.low` is sent when it falls below it, at once if it is below it now. ' +
    '`balance.recovered` is sent when it is at the threshold or above it again. Null turns the alert off.',
  query: z.strictObject({}),
  body: BalanceAlertRequest,
  responses: { 200: BalanceAlertResource },
  examples: { body: { threshold: BALANCE_ALERT.threshold }, 200: BALANCE_ALERT },
});

export const balanceAlert = resource(
  { getBalanceAlert, setAlert },
  ({ orm, eventsWritten }: { orm: Orm; eventsWritten(): void }) => ({
    getBalanceAlert: async ({ caller }) => ({
      status: 200,
      body: present(caller.mode, await readAlertThreshold(orm.em.fork(), caller)),
    }),

    async setAlert({ caller, body: { threshold } }) {
      await setBalanceAlert(orm, caller, threshold);
      eventsWritten();
      return { status: 200, body: present(caller.mode, threshold) };
    },
  }),
);

const present = (mode: BalanceAlertResource['mode'], threshold: number | null): BalanceAlertResource => ({
  object: 'balance_alert',
  threshold,
  mode,
});
