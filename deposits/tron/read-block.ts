import { createHash } from 'node:crypto';
import { NodeProblem } from './node-health.ts';
import type { SeenTransfer, SolidBlock, UsdtTransfer } from './tron-chain.ts';

/** keccak256('Transfer(address,address,uint256)') */
const TRANSFER_TOPIC = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
/**
 * A token's functions that transfer: where the words of recipient and value begin, after the selector's 4
 * bytes.
 */
const TRANSFER_CALLS = new Map([
  ['a9059cbb', 8],
  ['23b872dd', 72],
]);
const WORD = 64;

/** A block without the effects of its transactions. */
export interface Header {
  number: number;
  hash: string;
  parentHash: string;
  time: Date;
  /** In the order of the block, as the node reported them. */
  txHashes: string[];
}

/**
 * Parses a block from a node, which is not trusted to send the right shape. Null for `{}`: the node doesn't
 * have the block.
 * @throws NodeProblem if it isn't a block, or its hash isn't that of its header
 */
export function readHeader(answer: unknown): Header | null {
  const { blockID, block_header, transactions = [] } = asObject(answer);
  if (blockID === undefined && block_header === undefined) return null;
  const raw = asObject(asObject(block_header).raw_data);
  // Protobuf's JSON omits a 0.
  const { number = 0, parentHash, timestamp } = raw;
  const time = new Date(typeof timestamp === 'number' ? timestamp : Number.NaN);
  if (!isWholeNumber(number) || Number.isNaN(time.getTime())) throw malformed();
  const hash = asHash(blockID);
  if (hashHeader(number, raw) !== hash) throw new NodeProblem('contradicting', 'wrong_hash');
  return {
    number,
    hash,
    parentHash: asHash(parentHash),
    time,
    txHashes: asList(transactions).map((one) => asText(asObject(one).txID)),
  };
}

/**
 * A block's hash, as java-tron makes it: the SHA-256 of the header's `raw_data` in protobuf (Tron.proto,
 * BlockHeader.raw), with the block's number in place of the first 8 bytes.
 */
function hashHeader(number: number, raw: Record<string, unknown>): string {
  const message = Buffer.concat([
    ...numberField(1, raw.timestamp),
    ...bytesField(2, raw.txTrieRoot),
    ...bytesField(3, raw.parentHash),
    ...numberField(7, raw.number),
    ...numberField(8, raw.witness_id),
    ...bytesField(9, raw.witness_address),
    ...numberField(10, raw.version),
    ...bytesField(11, raw.accountStateRoot),
  ]);
  const digest = createHash('sha256').update(message).digest('hex');
  return number.toString(16).padStart(16, '0') + digest.slice(16);
}

function numberField(field: number, value: unknown = 0): Buffer[] {
  if (!isWholeNumber(value)) throw malformed();
  return value === 0 ? [] : [varint(field << 3), varint(value)];
}

function bytesField(field: number, value: unknown = ''): Buffer[] {
  const text = asText(value);
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(text)) throw malformed();
  const bytes = Buffer.from(text, 'hex');
  return bytes.length === 0 ? [] : [varint((field << 3) | 2), varint(bytes.length), bytes];
}

/** Protobuf's encoding of a whole number: 7 bits a byte, the lowest first. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

/**
 * The block with its transfers. Null if there are fewer infos than transactions, because the node does not
 * have them all yet.
 * @param infos the infos of all its transactions, in any order, none of which is kept
 * @param usdtHash the contract's 20 bytes, in hex
 * @throws NodeProblem if the infos are malformed or belong to other transactions
 */
export async function readSolidBlock(
  { txHashes, ...header }: Header,
  infos: AsyncIterable<unknown>,
  usdtHash: string,
  node: string,
): Promise<SolidBlock | null> {
  const indexes = new Map(txHashes.map((hash, index) => [hash, index]));
  const transfers: UsdtTransfer[] = [];
  for await (const one of infos) {
    const info = asObject(one);
    const id = asText(info.id);
    const transactionIndex = indexes.get(id);
    if (transactionIndex === undefined || info.blockNumber !== header.number)
      throw new NodeProblem('contradicting', 'foreign_infos');
    indexes.delete(id);
    for (const transfer of readTransfers(info, transactionIndex, usdtHash, node)) transfers.push(transfer);
  }
  if (indexes.size > 0) return null;
  transfers.sort((a, b) => a.transactionIndex - b.transactionIndex || a.logIndex - b.logIndex);
  return { ...header, node, transfers };
}

function readTransfers(
  info: Record<string, unknown>,
  transactionIndex: number,
  usdtHash: string,
  node: string,
): UsdtTransfer[] {
  if (info.log === undefined || info.result === 'FAILED' || asObject(info.receipt).result !== 'SUCCESS')
    return [];
  return asList(info.log).flatMap((one, logIndex) => {
    const { address, topics = [], data } = asObject(one);
    if (typeof address !== 'string' || address.toLowerCase() !== usdtHash) return [];
    const [event, , recipient, ...more] = asList(topics);
    if (asText(event ?? '').toLowerCase() !== TRANSFER_TOPIC || recipient === undefined || more.length > 0)
      return [];
    const valueMicroUsdt = BigInt(`0x${asHash(data)}`);
    if (valueMicroUsdt === 0n) return [];
    const place = {
      txHash: asHash(info.id),
      logIndex,
      transactionIndex,
      blockNumber: Number(info.blockNumber),
    };
    return [{ ...place, toHash: asHash(recipient).slice(-40), valueMicroUsdt, shownBy: [node] }];
  });
}

/**
 * Transfers according to the calls in a block, because logs are only known once its infos are read. Never
 * throws.
 */
export function readCalls(answer: unknown, blockNumber: number, usdtHash: string): SeenTransfer[] {
  const transactions = (answer as { transactions?: unknown } | null)?.transactions;
  return (Array.isArray(transactions) ? transactions : []).flatMap((one) => {
    if (one?.ret?.[0]?.contractRet !== 'SUCCESS') return [];
    const { contract_address: contract, data } = one.raw_data?.contract?.[0]?.parameter?.value ?? {};
    if (contract !== `41${usdtHash}` || typeof data !== 'string') return [];
    const start = TRANSFER_CALLS.get(data.slice(0, 8)) ?? data.length;
    const words = data.slice(start, start + 2 * WORD);
    if (!/^[0-9a-f]{128}$/.test(words)) return [];
    const valueMicroUsdt = BigInt(`0x${words.slice(WORD)}`);
    return [{ blockNumber, toHash: words.slice(24, WORD), valueMicroUsdt }];
  });
}

function asObject(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed();
  return value as Record<string, unknown>;
}

function asList(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw malformed();
  return value;
}

/** 32 bytes, in lower-case hex. */
function asHash(value: unknown): string {
  const text = asText(value);
  if (!/^[0-9a-f]{64}$/i.test(text)) throw malformed();
  return text.toLowerCase();
}

/** String() would throw another error for an object that has a `toString` of its own. */
function asText(value: unknown): string {
  if (typeof value !== 'string') throw malformed();
  return value;
}

function isWholeNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function malformed(): NodeProblem {
  return new NodeProblem('failing', 'wrong_shape');
}
