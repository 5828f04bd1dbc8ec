import assert from 'node:assert/strict';
import type pg from 'pg';
import type { Orm } from '../../../platform/db/orm.ts';

interface PlanNode {
  'Node Type': string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  Plans?: PlanNode[];
}

/** The service's own statements on this connection, each looked at before it is run. @param limit of a page */
export function explainReads(owner: pg.Client, limit: number) {
  /** What a page may cost: of each type or status a page is looked at, and for each row its own few. */
  const mostRows = 20 * (limit + 1);
  const mostBlocks = 60 * (limit + 1);
  const plans: PlanNode[] = [];
  const prepared: string[] = [];
  /** Whether the rows are wanted, or the plan alone. */
  let isRead = true;
  const executor = {
    executeQuery: async ({ sql, parameters }: { sql: string; parameters: readonly unknown[] }) => {
      const isNew = !prepared.includes(sql);
      if (isNew) prepared.push(sql);
      const name = `listed_${prepared.indexOf(sql)}`;
      if (isNew) await owner.query(`PREPARE ${name} AS ${sql}`);
      const run = `EXECUTE ${name}${parameters.length === 0 ? '' : `(${parameters.map(literal)})`}`;
      const explained = await owner.query(`EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ${run}`);
      plans.push(explained.rows[0]['QUERY PLAN'][0].Plan);
      return isRead ? owner.query(run) : { rows: [{ id: null, known: true }] };
    },
  };
  const orm = { em: { fork: () => ({ getTransactionContext: () => executor }) } } as unknown as Orm;

  function literal(value: unknown): string {
    if (value === null) return 'NULL';
    if (Array.isArray(value)) return owner.escapeLiteral(`{${value.join(',')}}`);
    return owner.escapeLiteral(value instanceof Date ? value.toISOString() : String(value));
  }

  /** @param modes how many of them are read at once @param wantsRows false: none are returned */
  async function readsLittle<T>(
    asked: object,
    read: () => Promise<T[]>,
    { modes = 1, statements = 1, wantsRows = true } = {},
  ): Promise<T[]> {
    plans.length = 0;
    isRead = wantsRows;
    const found = await read();
    assert.equal(plans.length, statements);
    for (const plan of plans) {
      const scanned = rowsRead(plan);
      const blocks = plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
      const said = `${scanned} rows, ${blocks} blocks for ${JSON.stringify(asked)}: ${JSON.stringify(plan, null, 1)}`;
      assert.ok(scanned <= modes * mostRows && blocks <= modes * mostBlocks, said);
    }
    return found;
  }

  return { orm, readsLittle };
}

/** What the scans of tables and indexes looked at, whether it was used or not. */
function rowsRead(node: PlanNode): number {
  const below = (node.Plans ?? []).reduce((sum, plan) => sum + rowsRead(plan), 0);
  if (!/^(Seq|Index|Index Only|Bitmap Heap|Bitmap Index) Scan$/.test(node['Node Type'])) return below;
  const looked =
    node['Actual Rows'] +
    (node['Rows Removed by Filter'] ?? 0) +
    (node['Rows Removed by Index Recheck'] ?? 0);
  return below + Math.ceil(looked * node['Actual Loops']);
}
