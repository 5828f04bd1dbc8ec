import Koa from 'koa';
import pg from 'pg';

/** The floor of a read: Koa, a pool and the same query; no keys, no checks, no logs. */
const [, , port = '', databaseUrl = '', partnerId = ''] = process.argv;
const pool = new pg.Pool({ connectionString: databaseUrl, max: 20 });

const ONE = `
  SELECT c.*, a.posted AS balance_cents FROM card c LEFT JOIN ledger.account a ON a.card_id = c.id
  WHERE c.partner_id = $1 AND c.mode = $2 AND c.id = $3`;
const PAGE = `
  SELECT page.*, a.posted AS balance_cents FROM (
    SELECT c.* FROM card c WHERE c.partner_id = $1 AND c.mode = $2 AND c.id < $3 ORDER BY c.id DESC LIMIT 21
  ) page LEFT JOIN ledger.account a ON a.card_id = page.id ORDER BY page.id DESC`;

const app = new Koa();
app.use(async (ctx) => {
  const after = ctx.query.starting_after;
  const [sql, id] = after === undefined ? [ONE, ctx.path.slice('/v1/cards/'.length)] : [PAGE, after];
  const { rows } = await pool.query(sql, [partnerId, 'test', id]);
  ctx.body = after === undefined ? rows[0] : { data: rows };
});
app.listen(Number(port), '127.0.0.1');
