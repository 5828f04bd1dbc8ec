import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const SQUAWK = fileURLToPath(new URL('../../../../node_modules/.bin/squawk', import.meta.url));

/** The rules that `npm run check` finds broken, by its own configuration. */
function rulesBrokenBy(sql: string): string[] {
  const { stdout, error } = spawnSync(SQUAWK, ['--reporter', 'json'], {
    ...{ cwd: ROOT, input: `-- Up Migration\n${sql}`, encoding: 'utf8' },
  });
  if (error !== undefined) throw error;
  return JSON.parse(stdout).map(({ rule_name }: { rule_name: string }) => rule_name);
}

describe('the migration check', () => {
  const REFUSED: [what: string, sql: string, rule: string][] = [
    ['an index on a table in use', 'CREATE INDEX a ON card (last4);', 'require-concurrent-index-creation'],
    [
      'a change that rewrites a table',
      'ALTER TABLE card ALTER last4 TYPE integer USING 1;',
      'changing-column-type',
    ],
    [
      'a column that old code does not write',
      'ALTER TABLE card ADD a text NOT NULL;',
      'adding-required-field',
    ],
    ['a dropped column', 'ALTER TABLE card DROP last4;', 'ban-drop-column'],
    ['a renamed column', 'ALTER TABLE card RENAME last4 TO digits;', 'renaming-column'],
    ['a dropped table', 'DROP TABLE card;', 'ban-drop-table'],
    [
      'a constraint that reads the whole table',
      "ALTER TABLE card ADD CONSTRAINT a CHECK (last4 <> '');",
      'constraint-missing-not-valid',
    ],
    [
      'NOT NULL that reads the whole table',
      'ALTER TABLE card ALTER last4 SET NOT NULL;',
      'adding-not-nullable-field',
    ],
  ];
  for (const [what, sql, rule] of REFUSED) {
    it(`refuses ${what}`, () => {
      const rules = rulesBrokenBy(sql);
      assert.ok(rules.includes(rule), rules.join());
    });
  }

  it('allows changes that old code does not notice', () => {
    const expanding = `
      CREATE TABLE note (id text PRIMARY KEY, card_id text NOT NULL REFERENCES card);
      CREATE INDEX note_of_card ON note (card_id);
      ALTER TABLE card ADD COLUMN nickname text;
      ALTER TABLE card ADD CONSTRAINT short CHECK (length(nickname) < 100) NOT VALID;
      GRANT SELECT, INSERT ON note TO card_issuing_app;`;
    assert.deepEqual(rulesBrokenBy(expanding), []);
  });
});
