import { z } from 'zod';
import { Mode } from '../../domain/mode.ts';
import { route } from '../route.ts';

const Ping = z.object({ ok: z.literal(true), partner_id: z.string(), partner_name: z.string(), mode: Mode });

export const ping = () =>
  route({
    method: 'get',
    path: '/ping',
    summary: 'Check a key',
    query: z.strictObject({}),
    responses: { 200: Ping },
    handle: async ({ caller }) => ({
      status: 200,
      body: { ok: true, partner_id: caller.partnerId, partner_name: caller.partnerName, mode: caller.mode },
    }),
  });
