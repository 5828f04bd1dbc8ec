import { z } from 'zod';
import { declare, resource } from '../api/http/route.ts';
import { Mode } from '../domain/mode.ts';
import { PING } from './examples.ts';

const Ping = z
  .object({
    ok: z.literal(true).describe('Always `true`.'),
    partner_id: z.string().describe("Your account's id. Prefix `prt_`."),
    partner_name: z.string().describe("Your account's name."),
    mode: Mode,
  })
  .meta({ id: 'Ping', description: 'The account and mode that an API key belongs to.' });

const ping = declare({
  method: 'get',
  path: '/ping',
  scope: null,
  operationId: 'account.ping',
  summary: 'Check an API key',
  description: 'Tells you which account and mode the key belongs to.',
  query: z.strictObject({}),
  responses: { 200: Ping },
  examples: { 200: PING },
});

export const account = resource({ ping }, () => ({
  ping: async ({ caller }) => ({
    status: 200,
    body: { ok: true, partner_id: caller.partnerId, partner_name: caller.partnerName, mode: caller.mode },
  }),
}));
