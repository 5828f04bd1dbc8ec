import { z } from 'zod';
import { createApiKey } from '../accounts/api-keys.ts';
import { createPartner } from '../accounts/partners.ts';
import { Scope } from '../accounts/scope-rules.ts';
import { createFirstProduct } from '../cards/products.ts';
import type { Config, MigrationConfig } from '../platform/config/service.ts';
import { KeyRing } from '../platform/crypto/key-ring.ts';
import { OPERATOR_ROLE } from '../platform/db/login.ts';
import { openOrm } from '../platform/db/orm.ts';
import { query } from '../platform/db/sql.ts';
import type { OperatorContext } from '../requests/operator-context.ts';
import { readJsonFile, writePrivateFile } from './process/files.ts';

export const DemoPartner = z.object({ partnerId: z.string(), testKey: z.string(), liveKey: z.string() });

/** The partner that a newcomer tries the API with. */
export type DemoPartner = z.infer<typeof DemoPartner>;

/**
 * Makes sure that a product and a demo partner exist. The database keeps only hashes of the API keys, so the
 * file keeps the keys. If the database does not know the file's partner, a new one is created.
 */
export async function setUpDemo(options: {
  /** With the operator's database URL. */
  config: Pick<Config, 'databaseUrl' | 'allowOwnerLogin' | 'encryptionKeys'> &
    Pick<MigrationConfig, 'firstProduct'>;
  file: string;
}): Promise<DemoPartner> {
  const { config, file } = options;
  const orm = await openOrm({
    databaseUrl: config.databaseUrl,
    poolSize: 2,
    applicationName: 'card-issuing-start',
    role: OPERATOR_ROLE,
    onOwnerLogin: config.allowOwnerLogin ? () => {} : undefined,
  });
  try {
    const context = { orm, ring: new KeyRing(config.encryptionKeys), actor: 'npm start' };
    if (config.firstProduct !== null) await createFirstProduct(context, config.firstProduct);
    const known = readJsonFile(file, DemoPartner);
    if (known !== undefined && (await exists(context, known.partnerId))) return known;
    const partner = await create(context);
    writePrivateFile(file, JSON.stringify(partner, null, 2));
    return partner;
  } finally {
    await orm.close();
  }
}

async function exists({ orm }: OperatorContext, partnerId: string): Promise<boolean> {
  const rows = await query(orm.em.fork(), 'SELECT 1 FROM partner WHERE id = $1', [partnerId]);
  return rows.length > 0;
}

async function create(context: OperatorContext): Promise<DemoPartner> {
  const { id: partnerId } = await createPartner(context, { name: 'Demo', secureDetailsEnabled: false });
  const scopes = Scope.options;
  const test = await createApiKey(context, { partnerId, mode: 'test', name: 'demo', scopes });
  const live = await createApiKey(context, { partnerId, mode: 'live', name: 'demo', scopes });
  return { partnerId, testKey: test.key, liveKey: live.key };
}
