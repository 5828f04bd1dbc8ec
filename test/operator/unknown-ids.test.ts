import assert from 'node:assert/strict';
import { type Operate, operateIn, operatorEnvironment } from '../support/operator/operate.ts';

const PARTNER = 'prt_01k0000000000000000000000a';
const KEY = 'key_01k0000000000000000000000a';
const DEPOSIT = 'dep_01k0000000000000000000000a';
const EVENT = `evt_${'0'.repeat(26)}`;
/** Somebody pasted an API key where an id belongs. */
const PASTED = 'sk_live_pastedByMistake';
const WHY = '--reason r';

const UNKNOWN: Record<string, readonly string[]> = {
  [`There is no partner ${PARTNER}: run "operator partner list".`]: [
    `partner show ${PARTNER}`,
    `partner update ${PARTNER} --name x`,
    `partner fees ${PARTNER}`,
    `partner fees ${PARTNER} --card-activation 1`,
    `partner limits ${PARTNER} --max-card 1000`,
    `partner adjust ${PARTNER} --mode test --amount 1 ${WHY}`,
    `partner suspend ${PARTNER} ${WHY}`,
    `partner resume ${PARTNER} ${WHY}`,
    `key create ${PARTNER} --mode test`,
    `key list ${PARTNER}`,
    `product allow ${PARTNER} ONE`,
    `webhook list --partner ${PARTNER}`,
    `webhook requeue --yes --partner ${PARTNER}`,
    `webhook-endpoint set ${PARTNER} --url https://hooks.example.com/a`,
    ...['show', 'list', 'replays', 'rotate-secret', 'disable', 'enable'].map(
      (verb) => `webhook-endpoint ${verb} ${PARTNER}`,
    ),
  ],
  'This is not the id of a partner (prt_ and 26 letters or digits): run "operator partner list".': [
    `partner show ${PASTED}`,
    `partner suspend ${PASTED} ${WHY}`,
    `partner resume ${PASTED} ${WHY}`,
    `ledger balance ${PASTED} --mode test`,
  ],
  [`There is no key ${KEY}: run "operator key list PARTNER".`]: [`key revoke ${KEY}`],
  'This is not the id of a key (key_ and 26 letters or digits): run "operator key list PARTNER".': [
    `key revoke ${PASTED}`,
  ],
  'There is no product NOPE: run "operator product list".': ['product retire NOPE'],
  [`There is no event ${EVENT}: run "operator webhook list"; events are kept for 30 days.`]: [
    `webhook show ${EVENT}`,
    `webhook requeue ${EVENT}`,
  ],
  [`There is no deposit ${DEPOSIT}: run "operator deposit list".`]: [
    `deposit show ${DEPOSIT}`,
    `deposit resolve ${DEPOSIT} --credit ${WHY}`,
  ],
  'This is not the id of a deposit (dep_ and 26 letters or digits): run "operator deposit list".': [
    `deposit show ${PASTED}`,
    `deposit resolve ${PASTED} --credit ${WHY}`,
  ],
};

describe("the operator's command line refuses what there is not, and says where to look:", () => {
  let operate: Operate;
  before(async () => {
    operate = operateIn(await operatorEnvironment());
  });

  for (const [said, lines] of Object.entries(UNKNOWN)) {
    it(said, async () => {
      for (const line of lines) {
        const { code, out, err } = await operate(...line.split(' '));
        assert.deepEqual([code, out, err], [1, '', `${said}\n`], line);
      }
    });
  }
});
