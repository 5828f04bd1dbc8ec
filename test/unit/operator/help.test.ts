import assert from 'node:assert/strict';
import { runOperator } from '../../../operator/program.ts';

/** Every noun with its verbs, in the order of the help. */
const VERBS: Record<string, string> = {
  partner: 'create list show update suspend resume fees limits controls adjust erase-cardholder',
  adjustment: 'list approve reject',
  login: 'create list revoke',
  key: 'create list revoke',
  workbench: 'link',
  'key-ring': 'reseal',
  product: 'list set-current allow retire',
  card: 'list show resolve freeze unfreeze block dismiss',
  topup: 'list show resolve book dismiss',
  withdrawal: 'list show resolve book dismiss',
  deposit: 'list show resolve',
  tron: 'status rescan',
  authorization: 'list show',
  transaction: 'list show undecided book approve reject dismiss',
  request: 'find',
  operation: 'list show',
  network: 'reconcile findings dismiss',
  'network-event': 'list show retry dismiss send',
  'true-up': 'list retry dismiss',
  'webhook-endpoint': 'set list show replays rotate-secret disable enable',
  webhook: 'list show requeue',
  ledger: 'check balance statement transactions',
  attention: 'list',
  restore: 'reconcile',
  audit: 'list verify export',
};

describe("the operator's command line", () => {
  it('has exactly these nouns and verbs, each with help and examples', async () => {
    assert.deepEqual(await commandsOf(), Object.keys(VERBS));
    for (const [noun, verbs] of Object.entries(VERBS)) {
      assert.deepEqual(await commandsOf(noun), verbs.split(' '));
      for (const verb of verbs.split(' ')) {
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
