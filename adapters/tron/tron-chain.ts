import type { NodeState } from '../../db/entities/deposits.ts';

/** The chain as the scan reads it, from whatever nodes. Hashes are lower-case hex. */
export interface TronChain {
  /**
   * The solid blocks after `after`, in order, each the child of the one before it: as many as can be read in a few seconds,
   * at most `atMost`, and none if no node has the next one yet.
   * Every block is complete: its header, and an info for each of its transactions.
   * To read ahead while these are being committed, call it again with the last of them first.
   * @param after if its `hash` is null, any block with the next number is accepted
   * @throws ChainUnreadable if no node responds, or none has a block that follows `after`. Try again soon: a node that asked
   * for a pause still gets it.
   */
  readBlocks(after: BlockRef, atMost: number, signal: AbortSignal): Promise<SolidBlock[]>;
  /**
   * The last solid block produced before `time`; if the whole chain is younger, block 0 with `hash` null and `time` itself.
   * @throws ChainUnreadable, also if no node keeps blocks that old, because payments in them could be missed
   */
  findLastBlockBefore(time: Date, signal: AbortSignal): Promise<BlockRef & { time: Date }>;
  /**
   * Asks the other nodes whether they know these transfers, and waits a few seconds for nodes that are about to get the
   * block.
   * @returns for each denied transfer, the name of a node that denies it. A node that can't tell denies nothing.
   */
  findDenied(
    block: SolidBlock,
    transfers: readonly UsdtTransfer[],
    signal: AbortSignal,
  ): Promise<Map<UsdtTransfer, string>>;
  /**
   * Transfers in blocks that are not solid yet, as a hint. It looks at each block after `number` once (or at the newest), and
   * skips some if there are more than a few. Call it once per interval; it usually costs one request.
   * @returns the last block it looked at. If a node fails, there is no hint; it doesn't throw.
   */
  readUnsolid(
    after: number | null,
    signal: AbortSignal,
  ): Promise<{ number: number; transfers: SeenTransfer[] } | null>;
  /** What is known about the nodes, without asking them. */
  state(): ChainState;
  /** Closes its connections. */
  close(): void;
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
  /** The name of the node it was read from. */
  node: string;
  transfers: UsdtTransfer[];
}

/** A Transfer event of the USDT contract with a value above zero, in a transaction that succeeded. */
export interface UsdtTransfer {
  txHash: string;
  /** Its position in the transaction's log. */
  logIndex: number;
  /** The transaction's position in its block. */
  transactionIndex: number;
  blockNumber: number;
  /** The recipient's 20 bytes, in hex. */
  toHash: string;
  valueMicroUsdt: bigint;
}

/**
 * A transfer that a call in a block asked for, before the block is solid. Its log position is unknown, and transfers by other
 * contracts aren't seen.
 */
export type SeenTransfer = Pick<UsdtTransfer, 'toHash' | 'valueMicroUsdt' | 'blockNumber'>;

interface ChainState {
  /** The newest solid block reported by a node in use; null before the first response. */
  solidBlockNumber: number | null;
  /** The node that the last block came from. */
  node: string | null;
  nodes: NodeState[];
}

/**
 * No node can be read at the moment, or their blocks don't follow the last one taken. The message gives each node's reason.
 */
export class ChainUnreadable extends Error {
  override name = 'ChainUnreadable';
}
