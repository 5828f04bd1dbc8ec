import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { BUILT_STATEMENTS } from '../../../db/sql.ts';
import { createTestDatabase } from '../../support/postgres.ts';
import { readSchema, type Schema, unboundTables } from '../../support/tenant-guard.ts';

describe('the tenant guard', () => {
  let schema: Schema;
  before(async () => {
    schema = await readSchema(await createTestDatabase());
    if (process.env.SHOW) console.log([...schema.ids]);
  });

  it('finds each statement tied to the account and mode it is given, or declared across tenants', async () => {
    const files = execFileSync('git', ['ls-files', '*.ts'], { encoding: 'utf8' }).split('\n')
      .filter((file) => file !== '' && !/^(test|bench|soak|dev)\//.test(file) && /(Statement|statementWithOperation)\(/.test(readFileSync(file, 'utf8')));
    let n = 0;
    const bad: string[] = [];
    const needless: string[] = [];
    let tenants = 0;
    for (const file of files) {
      await import(`../../../${file}`);
      for (const s of BUILT_STATEMENTS.slice(n)) {
        const tables = await unboundTables(schema, s).catch((e) => [`!! ${e}`]);
        if (tables.length > 0 && s.acrossTenants === undefined) bad.push(`${/[a-z-]+\/[a-z/-]+\.ts:\d+/.exec((s.built.stack??'').split('\n').filter((l) => /:\d+:\d+/.test(l) && !/db\/sql.ts/.test(l))[0]?.replace(/.*wt.tenant./,'') ?? '?')} [${tables}]\n${s.text.replace(/\s+/g, ' ').slice(0, Number(process.env.CUT ?? 200))}\n   ${s.names}`);
        if (tables.length === 0 && s.acrossTenants !== undefined) needless.push(s.text);
      }
      n = BUILT_STATEMENTS.length;
    }
    console.log(bad.join('\n\n'));
    console.log('needless', needless);
    console.log(n, 'statements', bad.length, 'bad');
  });
});
