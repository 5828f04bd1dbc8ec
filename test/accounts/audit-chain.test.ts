import assert from 'node:assert/strict';
import { exportAudit } from '../../accounts/audit-chain-operator.ts';
import { chainAudit } from '../../accounts/jobs.ts';
import { runOperator } from '../../operator/program.ts';
import { readOperatorConfig } from '../../platform/config/operator.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { type Orm, openOrm } from '../../platform/db/orm.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { recordAudit } from '../../requests/operator-context.ts';
import { type Operate, operateIn, operatorEnvironment } from '../support/operator/operate.ts';
import { asOwner, openOperatorOrm, serviceUrlOf } from '../support/postgres.ts';

describe('the audit log', () => {
  let env: NodeJS.ProcessEnv;
  let databaseUrl: string;
  let operate: Operate;
  let service: Orm;
  let operator: Orm;

  before(async () => {
    env = { ...(await operatorEnvironment()), OPERATOR: 'ada' };
    databaseUrl = serviceUrlOf(String(env.DATABASE_URL));
    operate = operateIn(env);
    service = await openOrm({ databaseUrl, poolSize: 3 });
    operator = await openOperatorOrm(databaseUrl);
  });
  beforeEach(() => asOwner(databaseUrl, 'TRUNCATE audit_entry, audit_chain, audit_unchained'));
  after(async () => {
    await service.close();
    await operator.close();
  });

  const owner = (statement: string, values: unknown[] = []) => asOwner(databaseUrl, statement, values);
  const record = (subject: string) =>
    transaction(operator, async (tx) =>
      recordAudit(tx, { actor: 'test', action: 'something.done', subject, detail: { at: subject } }),
    );
  const chained = async () => {
    const rows = await owner(
      'SELECT e.subject FROM audit_chain c JOIN audit_entry e ON e.id = c.id ORDER BY seq',
    );
    return rows.map(({ subject }) => subject);
  };
  const verify = async (...flags: string[]) => (await operate('audit', 'verify', ...flags)).json;
  const problemsOf = (verification: { problems: { problem: string }[] }) =>
    verification.problems.map(({ problem }) => problem);

  it("names OPERATOR, the system's user and host, and the database login", async () => {
    await operate('partner', 'create', '--name', 'First');
    const [entry] = (await operate('audit', 'list')).json;
    const { actor, operator: named, os_user, host, database_login, client_address } = entry;
    assert.deepEqual(
      { actor, named, os_user, host, client_address },
      { actor: 'ada', named: 'ada', os_user: 'tester', host: 'here', client_address: null },
    );
    assert.equal(database_login, new URL(String(env.DATABASE_URL)).username);
    assert.equal((await operate('audit', 'list', '--actor', 'ada')).json.length, 1);
  });

  it('takes the database login from the server, whatever a statement says', async () => {
    await operator.em.fork().execute(
      `INSERT INTO audit_entry (id, actor, action, subject, detail, database_login, operator)
         VALUES ('aud_1', 'a', 'b', 'c', '{}', 'somebody_else', 'somebody_else')`,
    );
    const [row] = await owner('SELECT database_login, operator FROM audit_entry');
    assert.deepEqual(row, { database_login: new URL(String(env.DATABASE_URL)).username, operator: null });
  });

  it('chains what commits late, lets nobody wait for it, and says what is not chained yet', async () => {
    const recorded = Promise.withResolvers<void>();
    const mayCommit = Promise.withResolvers<void>();
    const late = transaction(operator, async (tx) => {
      recordAudit(tx, { actor: 'test', action: 'something.done', subject: 'late', detail: {} });
      await tx.flush();
      recorded.resolve();
      await mayCommit.promise;
    });
    await recorded.promise;
    await record('first');
    const { whole, checked, waiting, waiting_since, head } = await verify();
    assert.deepEqual({ whole, checked, waiting, head }, { whole: true, checked: 0, waiting: 1, head: null });
    assert.ok(Date.parse(waiting_since) > 0);
    assert.equal(await chainAudit(service, 10), 1);
    mayCommit.resolve();
    await late;
    await record('second');
    assert.equal(await chainAudit(service, 10), 2);
    assert.equal(await chainAudit(service, 10), 0);
    assert.deepEqual(await chained(), ['first', 'late', 'second']);
    const after = await verify();
    assert.deepEqual([after.whole, after.checked, after.waiting], [true, 3, 0]);
  });

  it('is chained once, however many processes do it', async () => {
    const subjects = Array.from({ length: 60 }, (_, i) => `s${i}`);
    await Promise.all(subjects.map(record));
    while ((await owner('SELECT FROM audit_unchained')).length > 0) {
      await Promise.all([chainAudit(service, 7), chainAudit(service, 7), chainAudit(service, 7)]);
    }
    assert.deepEqual((await chained()).toSorted(), subjects.toSorted());
    assert.equal((await verify()).whole, true);
  });

  for (const [what, change, problem] of [
    ['changed', `UPDATE audit_entry SET actor = 'eve' WHERE subject = 's1'`, 'changed'],
    ['backdated', `UPDATE audit_entry SET at = at - interval '1 day' WHERE subject = 's1'`, 'changed'],
    [
      'given to another login',
      `UPDATE audit_entry SET database_login = 'eve' WHERE subject = 's1'`,
      'changed',
    ],
    ['removed', `DELETE FROM audit_entry WHERE subject = 's1'`, 'removed'],
  ] as const) {
    it(`shows that an entry was ${what}`, async () => {
      for (const subject of ['s0', 's1', 's2']) await record(subject);
      await chainAudit(service, 10);
      const [{ id } = { id: '' }] = await owner(`SELECT id FROM audit_entry WHERE subject = 's1'`);
      await owner(change);
      const { code, json } = await operate('audit', 'verify');
      assert.equal(code, 1);
      assert.deepEqual([json.whole, json.problem_count, json.problems], [false, 1, [{ id, problem }]]);
    });
  }

  it('shows that an entry was inserted around the queue, and that a link was changed or removed', async () => {
    for (const subject of ['s0', 's1', 's2']) await record(subject);
    await chainAudit(service, 10);
    const id = newId('aud');
    await owner(`SET session_replication_role = replica;
      INSERT INTO audit_entry (id, actor, action, subject, detail) VALUES ('${id}', 'eve', 'b', 'c', '{}')`);
    assert.deepEqual((await verify()).problems, [{ id, problem: 'inserted' }]);
    await owner('DELETE FROM audit_entry WHERE id = $1', [id]);
    await owner(`UPDATE audit_chain SET chained_at = chained_at - interval '1 day' WHERE seq = 1`);
    assert.deepEqual(problemsOf(await verify()), ['chain_broken']);
    await owner(`UPDATE audit_chain SET chained_at = chained_at + interval '1 day' WHERE seq = 1`);
    await owner('DELETE FROM audit_entry WHERE id = (SELECT id FROM audit_chain WHERE seq = 2)');
    await owner('DELETE FROM audit_chain WHERE seq = 2');
    assert.deepEqual(problemsOf(await verify()), ['chain_broken']);
  });

  it('shows with an earlier head that the end of the chain was cut off or made anew', async () => {
    for (const subject of ['s0', 's1']) await record(subject);
    await chainAudit(service, 10);
    const { head } = await verify();
    await record('s2');
    await chainAudit(service, 10);
    assert.equal((await verify('--head', head)).whole, true);
    await owner('DELETE FROM audit_entry; DELETE FROM audit_chain');
    assert.equal((await verify()).whole, true);
    assert.deepEqual(problemsOf(await verify('--head', head)), ['chain_broken']);
    await record('s3');
    await record('s4');
    await chainAudit(service, 10);
    assert.deepEqual(problemsOf(await verify('--head', head)), ['chain_broken']);
  });

  it('may lack entries from before --since, whose year was dropped', async () => {
    const old = 'aud_01j00000000000000000000000';
    await owner(
      `INSERT INTO audit_entry (id, actor, action, subject, detail) VALUES ($1, 'a', 'b', 'c', '{}')`,
      [old],
    );
    await record('s0');
    await chainAudit(service, 10);
    await owner('DELETE FROM audit_entry WHERE id = $1', [old]);
    assert.deepEqual((await verify()).problems, [{ id: old, problem: 'removed' }]);
    assert.equal((await verify('--since', '2026-01-01')).whole, true);
  });

  it('is exported since a time as JSON lines, with the links of the chain', async () => {
    await operate('partner', 'create', '--name', 'First');
    await operate('partner', 'create', '--name', 'Second');
    await chainAudit(service, 10);
    await operate('partner', 'create', '--name', 'Third');
    const { head } = await verify();
    const exported = async (since: string) => {
      let out = '';
      let err = '';
      const code = await runOperator(['audit', 'export', '--since', since], {
        readConfig: () => readOperatorConfig(env),
        actor: 'tester@here',
        out: (text) => {
          out += text;
        },
        err: (text) => {
          err += text;
        },
      });
      assert.equal(code, 0, err);
      return out
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    };
    const entries = await exported('1h');
    assert.deepEqual(
      entries.map(({ detail, chain }) => [detail.name, chain?.seq]),
      [
        ['First', 1],
        ['Second', 2],
        ['Third', undefined],
      ],
    );
    assert.equal(`2:${entries[1].chain.hash}`, head);
    assert.deepEqual(
      Object.keys(entries[0]),
      'id object at actor action subject detail operator os_user host database_login client_address chain'.split(
        ' ',
      ),
    );
    assert.deepEqual(
      (await exported(entries[1].at)).map(({ detail }) => detail.name),
      ['Second', 'Third'],
    );
    assert.deepEqual(await exported('2999-01-01'), []);
  });

  it('is exported once each, also what is chained while it is read', async () => {
    await record('first');
    await chainAudit(service, 10);
    await record('second');
    await record('third');
    const exported: string[] = [];
    for await (const page of exportAudit(operator, new Date(0))) {
      exported.push(...page.map(({ subject }) => subject));
      await chainAudit(service, 1);
    }
    assert.deepEqual(exported, ['first', 'third', 'second']);
  });

  it('is changed by no process but through the chain', async () => {
    for (const statement of [
      'DELETE FROM audit_chain',
      'UPDATE audit_chain SET hash = hash',
      "INSERT INTO audit_chain VALUES (1, 'a', '', '', now())",
      'DELETE FROM audit_unchained',
      'DELETE FROM refused_reveal',
    ]) {
      for (const orm of [service, operator])
        await assert.rejects(orm.em.fork().execute(statement), /permission denied/, statement);
    }
  });
});
