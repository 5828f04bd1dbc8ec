import { createPartner } from '../../commands/accounts/partners.ts';
import { sealEndpointSecret } from '../../crypto/webhooks.ts';
import { query } from '../../db/sql.ts';
import type { Mode } from '../../domain/mode.ts';
import type { BenchService } from '../support/start-service.ts';
import type { BenchReceiver } from '../webhook-receiver/start.ts';

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

export interface Endpoint {
  partnerId: string;
  /** Whose receipt counts. */
  counted: boolean;
}

export async function createEndpoints(
  { orm, ring }: BenchService,
  { origin }: BenchReceiver,
  options: { endpoints: number; failing?: number; hanging?: boolean; mode?: Mode },
): Promise<Endpoint[]> {
  const { mode = 'test' } = options;
  const made: Endpoint[] = [];
  // One endpoint can't fail a tenth of the time by its path: ten take turns then, one of which fails.
  const count = options.failing === undefined ? options.endpoints : Math.max(options.endpoints, 10);
  for (let i = 0; i < count; i++) {
    const partner = await createPartner(
      { orm, actor: 'bench' },
      { name: `Receiver ${i}`, secureDetailsEnabled: false },
    );
    const fails = options.failing !== undefined && i % Math.round(1 / options.failing) === 0;
    const kind = options.hanging ? 'hang' : fails ? 'fail' : 'ok';
    await query(
      orm.em.fork(),
      `INSERT INTO webhook_endpoint (partner_id, mode, url, secret) VALUES ($1, $2, $3, $4)`,
      [
        ...[partner.id, mode],
        `${origin}/${kind}/${i}`,
        sealEndpointSecret(ring, { partner_id: partner.id, mode }, SECRET),
      ],
    );
    made.push({ partnerId: partner.id, counted: kind === 'ok' });
  }
  return made;
}
