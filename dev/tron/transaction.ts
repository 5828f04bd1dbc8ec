import { createHash } from 'node:crypto';
import { Writer } from 'protobufjs/minimal.js';
import { hash41 } from './address.ts';
import type { Draft } from './drafts.ts';

/** The block that a transaction was made near. */
interface Origin {
  blockNumber: number;
  blockTimeMs: number;
  /** Tells apart transactions that are otherwise alike. */
  index: number;
}

const TYPES = { TransferContract: 1, TriggerSmartContract: 31 } as const;
const FEE_LIMIT_SUN = 100_000_000;
const ENERGY = { used: 64_285, feeSun: 6_428_500 };
/** java-tron's messages for a failure, in hex. */
const RES_MESSAGES = {
  REVERT: Buffer.from('REVERT opcode executed').toString('hex'),
  OUT_OF_ENERGY: Buffer.from(
    "Not enough energy for 'SSTORE' operation executing: curInvokeEnergyLimit[64285], curOpEnergy[20000], usedEnergy[52000]",
  ).toString('hex'),
};

/** A transaction and its info, as the JSON of java-tron 4.8. */
export class Transaction {
  readonly draft: Draft;
  readonly id: string;
  readonly #origin: Origin;
  readonly #rawData: object;
  readonly #rawDataHex: string;
  #json: string | undefined;
  #infoTail: string | undefined;

  constructor(draft: Draft, origin: Origin, id?: string) {
    this.draft = draft;
    const raw = rawData(draft, origin);
    this.#rawData = raw.json;
    this.#rawDataHex = raw.bytes.toString('hex');
    this.id = id ?? sha256(raw.bytes);
    this.#origin = origin;
  }

  /** A transaction with the same id, but with these changes. */
  altered(change: Partial<Pick<Draft, 'logs' | 'result'>>): Transaction {
    return new Transaction({ ...this.draft, ...change }, this.#origin, this.id);
  }

  /** Its JSON in a block. */
  get json(): string {
    this.#json ??= JSON.stringify({
      ret: [{ contractRet: this.draft.result }],
      signature: [`${sha256(this.id)}${sha256(`${this.id}'`)}00`],
      txID: this.id,
      raw_data: this.#rawData,
      raw_data_hex: this.#rawDataHex,
    });
    return this.#json;
  }

  infoJson(blockNumber: number, blockTimeMs: number): string {
    this.#infoTail ??= JSON.stringify(infoTail(this.draft)).slice(1);
    return `{"id":"${this.id}","blockNumber":${blockNumber},"blockTimeStamp":${blockTimeMs},${this.#infoTail}`;
  }
}

function infoTail({ call, logs, result }: Draft) {
  if (call.kind === 'trx') return { contractResult: [''], receipt: { net_usage: 267 } };
  const contract_address = hash41(call.contract);
  if (result !== 'SUCCESS') {
    return {
      fee: ENERGY.feeSun,
      contractResult: [''],
      contract_address,
      receipt: { energy_fee: ENERGY.feeSun, energy_usage_total: ENERGY.used, net_usage: 345, result },
      result: 'FAILED',
      resMessage: RES_MESSAGES[result],
    };
  }
  return {
    contractResult: ['0'.repeat(64)],
    contract_address,
    receipt: { energy_usage: ENERGY.used, energy_usage_total: ENERGY.used, net_usage: 345, result },
    log: logs.length > 0 ? logs : undefined,
  };
}

/** protocol.Transaction.raw (java-tron's Tron.proto), as bytes and as JSON. */
function rawData({ from, call }: Draft, { blockNumber, blockTimeMs, index }: Origin) {
  const refNumber = Math.max(0, blockNumber - 1);
  const ref_block_bytes = (refNumber & 0xffff).toString(16).padStart(4, '0');
  const ref_block_hash = sha256(`reference ${refNumber}`).slice(0, 16);
  const timestamp = blockTimeMs - 3_000 + index;
  const expiration = blockTimeMs + 57_000;
  const { type, value, bytes } = toContract(from, call);
  const type_url = `type.googleapis.com/protocol.${type}`;
  const isTrigger = type === 'TriggerSmartContract';

  const raw = Writer.create();
  raw.uint32(tag(1, 2)).bytes(Buffer.from(ref_block_bytes, 'hex'));
  raw.uint32(tag(4, 2)).bytes(Buffer.from(ref_block_hash, 'hex'));
  raw.uint32(tag(8, 0)).int64(expiration);
  raw.uint32(tag(11, 2)).fork().uint32(tag(1, 0)).int32(TYPES[type]);
  raw.uint32(tag(2, 2)).fork().uint32(tag(1, 2)).string(type_url).uint32(tag(2, 2)).bytes(bytes).ldelim();
  raw.ldelim().uint32(tag(14, 0)).int64(timestamp);
  if (isTrigger) raw.uint32(tag(18, 0)).int64(FEE_LIMIT_SUN);
  return {
    bytes: Buffer.from(raw.finish()),
    json: {
      contract: [{ parameter: { value, type_url }, type }],
      ref_block_bytes,
      ref_block_hash,
      expiration,
      fee_limit: isTrigger ? FEE_LIMIT_SUN : undefined,
      timestamp,
    },
  };
}

function toContract(from: string, call: Draft['call']) {
  const owner_address = hash41(from);
  const message = Writer.create().uint32(tag(1, 2)).bytes(Buffer.from(owner_address, 'hex'));
  if (call.kind === 'trx') {
    const value = { amount: call.amountSun, owner_address, to_address: hash41(call.to) };
    message.uint32(tag(2, 2)).bytes(Buffer.from(value.to_address, 'hex'));
    message.uint32(tag(3, 0)).int64(call.amountSun);
    return { type: 'TransferContract', value, bytes: message.finish() } as const;
  }
  const value = { data: call.data, owner_address, contract_address: hash41(call.contract) };
  message.uint32(tag(2, 2)).bytes(Buffer.from(value.contract_address, 'hex'));
  message.uint32(tag(4, 2)).bytes(Buffer.from(call.data, 'hex'));
  return { type: 'TriggerSmartContract', value, bytes: message.finish() } as const;
}

/** protobuf: a field's number and its wire type (0 varint, 2 length-delimited). */
function tag(field: number, wireType: 0 | 2): number {
  return (field << 3) | wireType;
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}
