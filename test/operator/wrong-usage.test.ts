import assert from 'node:assert/strict';
import { operateIn } from '../support/operator/operate.ts';

/** Nobody listens there: what gets as far as the database ends with exit code 1. */
const operate = operateIn({
  DATABASE_URL: 'postgres://nobody:none@127.0.0.1:1/none',
  ENCRYPTION_KEYS: `k1:${Buffer.alloc(32).toString('base64')}`,
});

const PARTNER = `prt_01k0000000000000000000000a`;
const CARD = 'card_01k0000000000000000000000a';
const TOP_UP = 'topup_01k0000000000000000000000a';
const WITHDRAWAL = 'wdr_01k0000000000000000000000a';
const DEPOSIT = 'dep_01k0000000000000000000000a';
const EVENT = `evt_${'0'.repeat(26)}`;
const ADJUST = `partner adjust ${PARTNER}`;
const SET_CURRENT = 'product set-current ONE --network visa --bin';
const CREATE_KEY = `key create ${PARTNER} --mode test`;
const SET_ENDPOINT = `webhook-endpoint set ${PARTNER} --url`;
const URL_A = 'https://hooks.example.com/a';

/** A command line: words, then values that are words of their own whatever they contain. */
type Line = readonly [words: string, ...values: string[]];

const WRONG: Record<string, readonly Line[]> = {
  'no known command': [
    [''],
    ['partner'],
    ['bogus'],
    ['partner bogus'],
    ['partner list --bogus'],
    ['partner list x'],
  ],
  "a partner's change": [
    [`partner update ${PARTNER}`],
    [`partner update ${PARTNER} --secure-details yes`],
    [`partner fees ${PARTNER} --card-activation -1`],
    [`partner fees ${PARTNER} --card-activation 1.5`],
    [`partner fees ${PARTNER} --card-activation 1e3`],
    [`partner fees ${PARTNER} --card-funding-bps 10001`],
    [`partner fees ${PARTNER} --decline-flat 9007199254740992`],
    [`partner limits ${PARTNER} --min-card 0`],
    [`partner limits ${PARTNER} --max-open-cards many`],
    [`partner limits ${PARTNER} --max-card`, ''],
  ],
  'an adjustment': [
    ...['0', '-0', '1.5', '1e3', '', 'five', '9007199254740992', '--key'].map(
      (amount): Line => [`${ADJUST} --mode live --reason r --amount`, amount],
    ),
    [`${ADJUST} --amount 5 --reason r`],
    [`${ADJUST} --mode live --reason r`],
    [`${ADJUST} --mode live --amount 5`],
    ['adjustment list --status lost'],
  ],
  'a key': [
    [`key create ${PARTNER}`],
    [`key create ${PARTNER} --mode both`],
    [`${CREATE_KEY} --scopes cards`],
    [`${CREATE_KEY} --ip-allowlist 10.0.0.0/33`],
    [`${CREATE_KEY} --ip-allowlist`, ''],
    [`${CREATE_KEY} --expires-at tomorrow`],
    [`${CREATE_KEY} --expires-at 9999-12-31T23:59:59-12:00`],
    ['key list --before prt_x'],
  ],
  'a product': [
    ...['12345', '123456789', '42424x', ''].map((bin): Line => [SET_CURRENT, bin]),
    ...['', 'x'.repeat(101), 'VISÄ', 'ONE\nTWO'].map(
      (code): Line => ['product set-current --bin 424242 --network visa', code],
    ),
    ['product set-current ONE --bin 424242'],
    [`${SET_CURRENT} 424242 --issuer-product`, 'a b'],
    [`product allow ${PARTNER}`],
  ],
  'a card': [
    ['card list --before nonsense'],
    ['card show'],
    ...['freeze', 'unfreeze', 'block'].map((verb): Line => [`card ${verb} ${CARD}`]),
    [`card resolve ${CARD} --failed --network-card-id n --reason r`],
    [`card resolve ${CARD} --issued --reason r --network-card-id`, ''],
    [`card resolve ${CARD} --issued --reason r --network-card-id`, 'a b'],
    [`card resolve ${CARD} --issued --reason r --network-card-id`, 'x'.repeat(101)],
  ],
  'a resolution': [
    ...[
      [`card resolve ${CARD}`, '--issued'],
      [`topup resolve ${TOP_UP}`, '--succeeded'],
      [`withdrawal resolve ${WITHDRAWAL}`, '--succeeded'],
    ].flatMap(([resolve, success]): Line[] => [
      [`${resolve} --reason r`],
      [`${resolve} ${success}`],
      [`${resolve} ${success} --failed --reason r`],
    ]),
    ['card resolve --issued --reason r'],
    ['topup resolve --succeeded --reason r'],
    ['withdrawal resolve --succeeded --reason r'],
    [`topup resolve ${TOP_UP} --issued --reason r`],
    [`withdrawal resolve ${WITHDRAWAL} --issued --reason r`],
    [`deposit resolve ${DEPOSIT} --credit`],
    [`deposit resolve ${DEPOSIT} --reason r`],
    [`deposit resolve ${DEPOSIT} --credit --returned --reason r`],
    [`deposit resolve ${DEPOSIT} --credit --reason`, ''],
    [`deposit resolve ${DEPOSIT} --credit --reason r --if-version 0`],
    [`deposit resolve ${DEPOSIT} --credit --reason r --if-version 99999999999`],
  ],
  'whose money it was': [
    ...['topup', 'withdrawal', 'transaction'].flatMap((noun): Line[] => [
      [`${noun} list`],
      [`${noun} list --card ${CARD} --partner ${PARTNER}`],
      [`${noun} list --card ${CARD} --before x`],
    ]),
    ['topup show'],
    ['withdrawal show'],
    ['deposit list --status open'],
    ['deposit list --limit 0'],
    ['deposit list --limit 10001'],
    ['deposit show'],
    [`ledger balance ${PARTNER}`],
    [`ledger transactions ${PARTNER}`],
    [`ledger transactions ${PARTNER} --mode test --before txn_x`],
    [`ledger statement ${PARTNER} 2026-10 --mode x`],
  ],
  'a webhook': [
    ['webhook requeue'],
    [`webhook requeue ${EVENT} --partner prt_x`],
    [`webhook requeue ${EVENT} --yes`],
    [`webhook requeue ${EVENT} --since 1h`],
    ['webhook requeue --since 1h --yes'],
    ['webhook requeue --partner prt_x --status pending'],
    ['webhook requeue --partner prt_x --status failed'],
    ['webhook requeue --partner prt_x --since yesterday'],
    ['webhook list --status failed'],
    ['webhook list --limit 0'],
    ['webhook list --limit 10001'],
    ['webhook show'],
    [`webhook-endpoint set ${PARTNER}`],
    [`${SET_ENDPOINT} ${URL_A} --mode prod`],
    [`${SET_ENDPOINT} ${URL_A} --url ${URL_A}`],
    [`${SET_ENDPOINT} ${URL_A} --mode test --mode live`],
  ],
  'a search of requests': [
    ['request find'],
    [`request find --request-id req_${'0'.repeat(26)} --key key_x`],
    ['request find --request-id', "x' OR true --"],
    ['request find --idempotency-key ü'],
    ['request find --idempotency-key', 'x'.repeat(256)],
    ['request find --idempotency-key x --since 1h'],
    ['request find --key key_x --partner prt_x'],
    ['request find --key key_x --before card_x'],
  ],
  'a chain': [
    ['tron rescan'],
    ...['0', '-5', '1.5', 'latest'].map((from): Line => ['tron rescan --from', from]),
    ['tron rescan --from 1 --network ethereum'],
  ],
  'the audit log': [
    ...['yesterday', '2026-11-20T08:00:00', '2026-13-01', '24', '-5m', ''].map(
      (since): Line => ['audit list --since', since],
    ),
    ['audit verify --head nonsense'],
  ],
};

const NAMED: readonly (readonly [named: RegExp, ...line: Line])[] = [
  ...['', 'x'.repeat(256), 'Acme\u0007', 'Acme\ud800', '--secure-details'].map(
    (name) => [/--name <name>/, 'partner create --name', name] as const,
  ),
  [/must be valid JSON/, `partner controls ${PARTNER} --set {`],
  [/blocked_categories must not be empty/, `partner controls ${PARTNER} --set {"blocked_categories":[]}`],
  [/categories/, `partner controls ${PARTNER} --set {"categories":["7995"]}`],
  [
    /spending_limits\.0\.amount/,
    `partner controls ${PARTNER} --set {"spending_limits":[{"amount":0,"interval":"daily"}]}`,
  ],
  [/--clear/, `partner controls ${PARTNER} --set {} --clear`],
  [/--reason/, `partner suspend ${PARTNER}`],
  [/--reason/, `partner resume ${PARTNER}`],
  [/--reason <reason>' not specified/, `${ADJUST} --mode test --amount -5`],
  [/given only once/, `${ADJUST} --mode live --amount 5 --reason r --amount 6`],
  ...[
    'http://hooks.example.com/',
    'https://10.0.0.1/',
    'https://user@hooks.example.com/',
    'http://127.0.0.1:8080/',
    'nonsense',
    '',
  ].map((url) => [/--url must/, SET_ENDPOINT, url] as const),
];

async function assertRefused([words, ...values]: Line, named = /./): Promise<void> {
  const args = [...words.split(' ').filter(Boolean), ...values];
  const { code, out, err } = await operate(...args);
  assert.deepEqual({ code, out }, { code: 2, out: '' }, `${args.join(' ')}: ${err}`);
  assert.match(err, named, args.join(' '));
}

describe("the operator's command line refuses as wrong usage, before it asks any server,", () => {
  for (const [what, lines] of Object.entries(WRONG)) {
    it(`${lines.length} command lines about ${what}`, async () => {
      for (const line of lines) await assertRefused(line);
    });
  }

  it('and names what is wrong', async () => {
    for (const [named, ...line] of NAMED) await assertRefused(line, named);
  });
});
