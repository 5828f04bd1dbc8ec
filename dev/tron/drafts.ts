import { addressHash, hashName, toBase58Address } from './address.ts';

/** What becomes a transaction once it is in a block. Accounts and contracts are 20 bytes, in hex. */
export interface Draft {
  from: string;
  call: { kind: 'contract'; contract: string; data: string } | { kind: 'trx'; to: string; amountSun: number };
  logs: Log[];
  result: 'SUCCESS' | 'REVERT' | 'OUT_OF_ENERGY';
}

/** As java-tron shows it: the emitter's address without its prefix 41. */
interface Log {
  address: string;
  topics: string[];
  data: string;
}

export interface Payment {
  /** `T…` */
  to: string;
  valueMicroUsdt: bigint;
  /** `T…`; by default any account. */
  from?: string;
}

/** The contract that fake nodes know as USDT. */
export const FAKE_USDT_CONTRACT = toBase58Address(hashName('USDT'));

/** Transfer(address,address,uint256), Approval(address,address,uint256): keccak-256 of the signature. */
const TRANSFER = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const APPROVAL = '8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925';
const METHODS = { transfer: 'a9059cbb', approve: '095ea7b3', disperse: 'c73a2d60' };
const SOMEBODY = toBase58Address(hashName('somebody'));

/**
 * One transaction that transfers the token: a single payment directly, several through a contract that pays
 * them all.
 */
export function tokenTransfer(payments: Payment | Payment[], contract = FAKE_USDT_CONTRACT): Draft {
  const all = [payments].flat();
  const [first] = all;
  const emitter = ownerHash(contract);
  const data = `${METHODS.transfer}${word(ownerHash(first?.to ?? SOMEBODY))}${word(hex(first?.valueMicroUsdt ?? 0n))}`;
  return {
    from: ownerHash(first?.from ?? SOMEBODY),
    call:
      all.length === 1
        ? { kind: 'contract', contract: emitter, data }
        : { kind: 'contract', contract: hashName('disperse'), data: METHODS.disperse },
    logs: all.map(({ from = SOMEBODY, to, valueMicroUsdt }) => ({
      address: emitter,
      topics: [TRANSFER, word(ownerHash(from)), word(ownerHash(to))],
      data: word(hex(valueMicroUsdt)),
    })),
    result: 'SUCCESS',
  };
}

/** A transfer that fails. With `logs`, it still has logs, as a lying node would show it. */
export function failedTransfer(
  payment: Payment,
  result: 'REVERT' | 'OUT_OF_ENERGY',
  logs: 'no logs' | 'logs' = 'no logs',
): Draft {
  const draft = tokenTransfer(payment);
  return { ...draft, result, logs: logs === 'logs' ? draft.logs : [] };
}

/** An approval: it allows somebody to spend, and transfers nothing. */
export function approval({ to, valueMicroUsdt, from = SOMEBODY }: Payment): Draft {
  const contract = ownerHash(FAKE_USDT_CONTRACT);
  return {
    from: ownerHash(from),
    call: {
      kind: 'contract',
      contract,
      data: METHODS.approve + word(ownerHash(to)) + word(hex(valueMicroUsdt)),
    },
    logs: [
      {
        address: contract,
        topics: [APPROVAL, word(ownerHash(from)), word(ownerHash(to))],
        data: word(hex(valueMicroUsdt)),
      },
    ],
    result: 'SUCCESS',
  };
}

/** A transfer of TRX, which runs no contract and has no log. */
export function trxTransfer(to: string, amountSun: number): Draft {
  return {
    from: ownerHash(SOMEBODY),
    call: { kind: 'trx', to: ownerHash(to), amountSun },
    logs: [],
    result: 'SUCCESS',
  };
}

function ownerHash(address: string): string {
  const hash = addressHash(address);
  if (hash === null) throw new TypeError(`${address} is not a TRON address`);
  return hash;
}

/** Padded to the 32 bytes of a contract's word. */
function word(hexDigits: string): string {
  return hexDigits.padStart(64, '0');
}

function hex(value: bigint): string {
  return value.toString(16);
}
