import Koa from 'koa';
import { createBareAuthorizations } from './bare-authorizations.ts';

/** The floor of a decision over HTTP: Koa, and the bare transaction; no keys, no checks, no logs. */
const [, , port = '', databaseUrl = '', partnerId = '', cardId = ''] = process.argv;
const authorizations = createBareAuthorizations(databaseUrl, 20);

const app = new Koa();
app.use(async (ctx) => {
  if (ctx.method === 'GET') {
    ctx.body = 'ready';
    return;
  }
  const chunks: Buffer[] = [];
  for await (const chunk of ctx.req) chunks.push(chunk);
  JSON.parse(Buffer.concat(chunks).toString());
  ctx.body = { id: await authorizations.decide({ cardId, partnerId, mode: 'test' }) };
});
app.listen(Number(port), '127.0.0.1');
