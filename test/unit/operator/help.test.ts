import assert from 'node:assert/strict';
import { runOperator } from '../../../operator/program.ts';

describe("the operator's command line", () => {
  it('has help and examples for every verb of every noun', async () => {
    const nouns = await commandsOf();
    assert.ok(nouns.length > 20);
    for (const noun of nouns) {
      const verbs = await commandsOf(noun);
      assert.ok(verbs.length > 0, noun);
      for (const verb of verbs) {
        const text = await helpOf(noun, verb);
        assert.match(text, /--json/);
        assert.ok(text.includes(`npm run operator -- ${noun} ${verb}`), text);
      }
    }
  });
});

async function helpOf(...words: string[]): Promise<string> {
  let text = '';
  const code = await runOperator([...words, '--help'], {
    readConfig: () => assert.fail('help needs no configuration'),
    actor: 'nobody',
    out: (part) => {
      text += part;
    },
    err: assert.fail,
  });
  assert.equal(code, 0);
  return text;
}

async function commandsOf(...words: string[]): Promise<string[]> {
  const text = await helpOf(...words);
  const block = text.slice(text.indexOf('Commands:\n') + 10).split('\n\n')[0] ?? '';
  const names = [...block.matchAll(/^ {2}(\S+)/gm)].map(([, name]) => name ?? '');
  return names.filter((name) => name !== 'help');
}
