import { readPartner, readPartnerNames } from '../accounts/reads.ts';
import { Refusal } from '../domain/refusal.ts';
import { readAccountMonth } from '../ledger/account-month.ts';
import { readBalance } from '../ledger/balances.ts';
import { ModeName, Since, Text } from '../operator/flag-values.ts';
import { presentAmounts } from '../operator/render.ts';
import { argument, flag, list, type Noun, needed, verb } from '../operator/verbs.ts';
import { readAttention } from './attention.ts';
import { checkAndRecord } from './check-ledger.ts';
import { readBalanceTransactions } from './reads.ts';
import { presentStatement } from './statement-resource.ts';

const PARTNER = argument('id of the partner');
const MODE = needed('<mode>', 'test or live', ModeName);

export const ledgerNoun: Noun = {
  check: verb({
    about:
      'check every invariant over the whole ledger; lists the violations and exits with 1 if there are any',
    examples: [''],
    async run(_, { session }) {
      const orm = await session.orm();
      const violations = await checkAndRecord(orm, { reader: orm, nextAt: null });
      return {
        value: violations,
        columns: ['invariant', 'subject', 'message'],
        failed: violations.length > 0,
        note:
          violations.length === 0
            ? 'Every invariant holds.'
            : 'Do not change rows by hand: find the cause, then correct the balance with "operator partner adjust".',
      };
    },
  }),

  balance: verb({
    about: "an account's prepaid balance, in cents",
    takes: { partner: PARTNER, mode: MODE },
    examples: ['prt_01k0… --mode live'],
    async run({ partner, mode }, { session }) {
      const orm = await session.orm();
      await readPartner(orm, partner);
      return { value: presentAmounts(await readBalance(orm.em.fork(), partner, mode)) };
    },
  }),

  statement: verb({
    about: "a month of an account's balance and cards, as its partner sees it; the current month up to now",
    takes: { partner: PARTNER, month: argument('as 2026-10, in UTC', Text(7)), mode: MODE },
    examples: ['prt_01k0… 2026-10 --mode live'],
    async run({ partner: partnerId, month, mode }, { session }) {
      const orm = await session.orm();
      await readPartner(orm, partnerId);
      const found = await readAccountMonth(orm.em.fork(), { partnerId, mode }, month);
      if (found === null) throw new Refusal(`${month} is no month that has begun: write it as 2026-10.`);
      return { value: presentStatement(month, mode, found) };
    },
  }),

  transactions: list({
    about:
      "every change to an account's prepaid balance, newest first, with what it was for and the request that caused it",
    takes: {
      partner: PARTNER,
      mode: MODE,
      since: flag('<time>', 'only those since then', Since),
      card: flag('<id>', 'only those of this card: issuance, top-ups, fees, its release', Text(100)),
    },
    pages: ['btx'],
    examples: ['prt_01k0… --mode live --since 24h', 'prt_01k0… --mode live --card card_01k0…'],
    columns: 'created id type amount balance_after source request_id idempotency_key',
    read: readBalanceTransactions,
    note: 'What is on hold is not listed until it is debited. See who asked for one with "operator request find --request-id ID".',
  }),
};

export const attentionNoun: Noun = {
  list: verb({
    about: 'everything that needs an operator, oldest first, with the command that resolves it',
    examples: [''],
    async run(_, { session }) {
      const orm = await session.orm();
      const items = await readAttention(orm, session.config, session.countWorkers);
      const partnerIds = items.flatMap(({ partner_id }) => partner_id ?? []);
      const names = await readPartnerNames(orm, partnerIds);
      return {
        value: items.map(({ kind, id, since, mode, partner_id, ...rest }) => {
          const partner_name = partner_id === null ? null : (names.get(partner_id) ?? null);
          return { kind, id, since, mode, partner_id, partner_name, ...rest };
        }),
        columns: ['since', 'kind', 'mode', 'id', 'partner_name', 'reason'],
        // Too long for a column.
        below: ['at_issuer', 'command', 'or_command'],
        note: items.length === 0 ? 'Nothing needs attention.' : undefined,
      };
    },
  }),
};
