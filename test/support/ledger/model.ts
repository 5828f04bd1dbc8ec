import assert from 'node:assert/strict';
import type { Mode } from '../../../domain/mode.ts';
import type { RejectionReason } from '../../../ledger/ledger-error.ts';
import type { Balance, LedgerAccount, Posting, Transfer, TransferCode } from '../../../ledger/posting.ts';
import { FLOWS } from './operations.ts';

export type Answer =
  | { outcome: 'applied' | 'replayed'; prepaid: Balance | null }
  | { outcome: 'insufficient_funds' | 'conflict' }
  | { outcome: 'rejected'; reason: RejectionReason };

interface Account {
  owner: string;
  posted: number;
  held: number;
}

interface Known {
  call: string;
  transfer: Transfer;
  answer: Answer;
}

const MAY_OVERDRAW: TransferCode[] = ['fee_transaction', 'fee_decline', 'late_debit'];
const MAY_HOLD: TransferCode[] = [
  ...(['issue_load', 'topup', 'fee_activation', 'fee_funding', 'authorization', 'withdrawal'] as const),
];

const ONLY_IN: Partial<Record<TransferCode, Mode>> = { fund_faucet: 'test', fund_usdt: 'live' };

/** The ledger as the design describes it: one operation after the other, in memory. */
export class Model {
  readonly accounts = new Map<string, Account>();
  readonly #known = new Map<string, Known>();
  readonly #resolved = new Set<string>();

  /** What the ledger must answer now. Nothing changes before `commit`. */
  decide(posting: Posting): { answer: Answer; commit(): void } {
    const { operationId, transfers } = posting;
    const call = JSON.stringify(posting);
    const first = this.#known.get(keyOf(operationId, transfers[0]?.step));
    if (first?.call === call) {
      assert.ok(first.answer.outcome === 'applied');
      return { answer: { outcome: 'replayed', prepaid: first.answer.prepaid }, commit() {} };
    }
    const draft = new Draft(this.accounts, posting);
    const made = new Map<string, Transfer>();
    for (const transfer of transfers) {
      const id = keyOf(operationId, transfer.step);
      if (this.#known.has(id)) return refusal({ outcome: 'conflict' });
      const holdId = keyOf(operationId, transfer.resolves);
      const hold = made.get(holdId) ?? this.#known.get(holdId)?.transfer;
      const resolved =
        this.#resolved.has(holdId) ||
        transfers.some(
          (t) =>
            made.has(keyOf(operationId, t.step)) &&
            t.resolves !== undefined &&
            t.resolves === transfer.resolves,
        );
      const refused = draft.add(transfer, hold, resolved);
      if (refused !== undefined) return refusal(refused);
      made.set(id, transfer);
    }
    const answer: Answer = { outcome: 'applied', prepaid: draft.prepaid };
    return {
      answer,
      commit: () => {
        for (const [id, account] of draft.changed) this.accounts.set(id, account);
        for (const [id, transfer] of made) {
          this.#known.set(id, { call, transfer, answer });
          if (transfer.resolves !== undefined) this.#resolved.add(keyOf(operationId, transfer.resolves));
        }
      },
    };
  }
}

class Draft {
  readonly changed = new Map<string, Account>();
  prepaid: Balance | null = null;
  readonly #accounts: ReadonlyMap<string, Account>;
  readonly #owner: string;
  readonly #mode: Mode;

  constructor(accounts: ReadonlyMap<string, Account>, { mode, partnerId }: Posting) {
    this.#accounts = accounts;
    this.#owner = `${mode}/${partnerId}`;
    this.#mode = mode;
  }

  add(transfer: Transfer, hold: Transfer | undefined, resolved: boolean): Answer | undefined {
    const { code, phase, amountCents } = transfer;
    const [debitKind, creditKind] = FLOWS[code];
    if (kindOf(transfer.debit) !== debitKind || kindOf(transfer.credit) !== creditKind)
      return rejected('wrong_accounts');
    const debited = this.#account(transfer.debit);
    const credited = this.#account(transfer.credit);
    if (debited.owner !== this.#owner || credited.owner !== this.#owner) return rejected('other_owner');
    if ((ONLY_IN[code] ?? this.#mode) !== this.#mode) return rejected('wrong_mode');
    if (phase === 'pending' && !MAY_HOLD.includes(code)) return rejected('hold_not_allowed');
    if (phase === 'post' || phase === 'void') {
      if (hold?.phase !== 'pending') return rejected('unknown_hold');
      if (resolved) return rejected('hold_resolved');
      const same = hold.code === code && idOf(hold.credit, '') === idOf(transfer.credit, '');
      const fits = phase === 'post' ? amountCents <= hold.amountCents : amountCents === hold.amountCents;
      if (!same || !fits) return rejected('hold_differs');
      debited.held -= hold.amountCents;
    } else if (isTracked(debitKind) && !MAY_OVERDRAW.includes(code)) {
      if (debited.posted - debited.held < amountCents) return { outcome: 'insufficient_funds' };
    }
    if (phase === 'pending') debited.held += amountCents;
    if (phase === 'single' || phase === 'post') {
      debited.posted -= amountCents;
      credited.posted += amountCents;
    }
    const prepaid = debitKind === 'prepaid' ? debited : creditKind === 'prepaid' ? credited : undefined;
    if (prepaid !== undefined) {
      const { posted, held } = prepaid;
      this.prepaid = { availableCents: posted - held, heldCents: held, totalCents: posted };
    }
    return undefined;
  }

  #account(account: LedgerAccount): Account {
    const id = idOf(account, this.#owner);
    const found = this.changed.get(id) ?? {
      ...(this.#accounts.get(id) ?? { owner: this.#owner, posted: 0, held: 0 }),
    };
    this.changed.set(id, found);
    return found;
  }
}

function keyOf(operationId: string, step: string | undefined): string {
  return JSON.stringify([operationId, step]);
}

function idOf(account: LedgerAccount, owner: string): string {
  return typeof account === 'string' ? `${account}/${owner}` : `card/${account.cardId}`;
}

function kindOf(account: LedgerAccount): string {
  return typeof account === 'string' ? account : 'card';
}

export function isTracked(kind: string): boolean {
  return kind === 'prepaid' || kind === 'card';
}

function rejected(reason: RejectionReason): Answer {
  return { outcome: 'rejected', reason };
}

function refusal(answer: Answer): { answer: Answer; commit(): void } {
  return { answer, commit() {} };
}
