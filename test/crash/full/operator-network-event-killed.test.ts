import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { checkBooks } from '../../../exports/check-books.ts';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { openCommands, type TestCommands } from '../../support/commands/open-commands.ts';
import { CUTS, cutCommits } from '../../support/crash/cut-commits.ts';
import { operateIn } from '../../support/operator/operate.ts';

const CARD_CENTS = 1_000;
const HELD_CENTS = 300;

/** Each message, whether it is about an authorization that is there, and what it leaves held and on the card. */
const MESSAGES = [
  ['authorization', false, '300', [300, CARD_CENTS]],
  ['authorization', false, '1001', [0, CARD_CENTS]],
  ['increment', true, '200', [500, CARD_CENTS]],
  ['increment', true, '701', [HELD_CENTS, CARD_CENTS]],
  ['clearing', true, '100', [0, 900]],
  ['reversal', true, '100', [200, CARD_CENTS]],
  ['expiry', true, null, [0, CARD_CENTS]],
] as const;

describe('operator network-event send, about an authorization,', () => {
  let commands: TestCommands;
  let partnerId: string;
  before(async () => {
    commands = await openCommands();
    partnerId = await commands.createFundedPartner(1_000_000);
  });
  after(async () => {
    const em = commands.context.orm.em.fork();
    assert.deepEqual([...(await checkLedger(em)), ...(await checkBooks(em))], []);
    await commands.close();
  });

  const environment = () => ({
    DATABASE_URL: commands.operatorUrl,
    CARD_NETWORK: 'simulated',
    ENCRYPTION_KEYS: `k1:${'a'.repeat(43)}=`,
  });
  const send = (args: readonly string[]) => operateIn(environment())('network-event', 'send', ...args);

  async function leftOf(cardId: string) {
    const { rows } = await commands.owner.query(
      `SELECT held, posted,
         (SELECT jsonb_agg(to_jsonb(z)) FROM card_authorization z WHERE card_id = $1) AS authorizations,
         (SELECT jsonb_agg(to_jsonb(t) ORDER BY id) FROM card_transaction t WHERE card_id = $1) AS transactions,
         (SELECT count(*) FROM simulated_message m JOIN card k USING (network_card_id) WHERE k.id = $1) AS messages,
         (SELECT count(*) FROM event WHERE card_id = $1) AS events,
         (SELECT count(*) FROM audit_entry WHERE detail ->> 'cardId' = $1) AS audited
       FROM ledger.account WHERE card_id = $1`,
      [cardId],
    );
    return rows[0];
  }

  for (const [type, isAbout, amount, money] of MESSAGES) {
    const what = amount === null ? type : `${type} of ${amount} cents`;
    it(`has one effect when its connection is cut before its COMMIT, and then after it, and is run again: ${what}`, async () => {
      const cardId = await commands.createActiveCard(partnerId, 'live', CARD_CENTS);
      const authorization = randomUUID();
      const transaction = randomUUID();
      const args = ['--card', cardId, '--type', type, '--network-transaction-id', transaction];
      if (amount !== null) args.push('--amount', amount);
      if (isAbout) {
        args.push('--network-authorization-id', authorization);
        const request = ['--card', cardId, '--type', 'authorization', '--amount', String(HELD_CENTS)];
        const asked = await send([...request, '--network-transaction-id', authorization]);
        assert.equal(asked.code, 0, asked.err);
      }
      const before = await leftOf(cardId);
      const cuts = cutCommits();
      for (const [when, hasHappened] of CUTS) {
        cuts.arm(when, transaction);
        const ended = await send(args);
        assert.equal(ended.code, 1, ended.err);
        if (!hasHappened) assert.deepEqual(await leftOf(cardId), before);
      }
      cuts.undo();

      const left = await leftOf(cardId);
      assert.deepEqual([Number(left.held), Number(left.posted)], money);
      assert.equal(Number(left.audited), isAbout ? 2 : 1);
      const again = await send(args);
      assert.equal(again.code, 0, again.err);
      const repeated = await send(args);
      assert.deepEqual([repeated.code, repeated.json], [0, again.json]);
      assert.deepEqual(await leftOf(cardId), left);
    });
  }
});
