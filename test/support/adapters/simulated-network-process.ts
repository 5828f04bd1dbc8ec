import { createSecretKey } from 'node:crypto';
import pino from 'pino';
import { startSimulatedNetwork } from '../../../issuers/simulated/server/start-server.ts';
import { openOrm } from '../../../platform/db/orm.ts';

// A host of the simulated network to be killed: prints its URL once it answers, and runs until then.
const [databaseUrl = '', callbackUrl = '', secret = ''] = process.argv.slice(2);
const { url } = await startSimulatedNetwork({
  orm: await openOrm({ databaseUrl, poolSize: 4 }),
  callbackUrl,
  secrets: () => [createSecretKey(secret, 'hex')],
  logger: pino({ level: 'silent' }),
});
console.log(url);
