import type { NodeState } from '../../db/entities/deposit.ts';

/** The chain as the scan reads it, whatever nodes it comes from. Hashes are lower-case hex. */
export interface TronChain {
  /**
   * The solid blocks that follow `after`, in order, each the child of the one before it, as many as there are at once but
   * at most `atMost`: none where no node has the next one yet.
   * A block is whole: its header, and as many infos as it has transactions, and theirs.
   * @param after with `hash` null any block of the next number is taken
   * @throws ChainUnreadable where no node answers, or none has a block that follows.
   */
  readBlocks(after: BlockRef, atMost: number, signal: AbortSignal): Promise<SolidBlock[]>;
  /** The last solid block that was made before `time`; the first block there is where none was. @throws ChainUnreadable */
  findLastBlockBefore(time: Date, signal: AbortSignal): Promise<BlockRef & { time: Date }>;
  /**
   * Asks the other nodes that have this block whether they know these transfers.
   * @returns of each that is denied the name of a node that does; one that is alone denies nothing.
   */
  findDenied(
    block: SolidBlock,
    transfers: readonly UsdtTransfer[],
    signal: AbortSignal,
  ): Promise<Map<UsdtTransfer, string>>;
  /**
   * Transfers in blocks that are not solid yet: a hint. It looks once at each block, from after `number` on (or the newest).
   * @returns the last block looked at. Never throws for a node's sake: then there is no hint.
   */
  readUnsolid(
    after: number | null,
    signal: AbortSignal,
  ): Promise<{ number: number; transfers: UsdtTransfer[] } | null>;
  /** What is known of the nodes, without asking them. */
  state(): ChainState;
}

export interface BlockRef {
  number: number;
  hash: string | null;
}

export interface SolidBlock {
  number: number;
  hash: string;
  parentHash: string;
  time: Date;
  /** Of the node it was read from. */
  node: string;
  transfers: UsdtTransfer[];
}

/** A Transfer event of the USDT contract with a value above zero, in a transaction that succeeded. */
export interface UsdtTransfer {
  txHash: string;
  /** Its place in the transaction's log. */
  logIndex: number;
  /** Of the transaction in its block. */
  transactionIndex: number;
  blockNumber: number;
  /** The recipient's 20 bytes, in hex. */
  toHash: string;
  valueMicroUsdt: bigint;
}

export interface ChainState {
  /** The newest solid block that a node in use was heard to have; null before the first answer. */
  solidBlockNumber: number | null;
  /** The one that the last block came from. */
  node: string | null;
  nodes: NodeState[];
}

/** No node can be read from at the moment, or what they say does not follow from what was taken. It says why by node. */
export class ChainUnreadable extends Error {
  override name = 'ChainUnreadable';
}
