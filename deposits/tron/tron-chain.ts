import type { NodeSays, NodeState } from '../../domain/deposit.ts';

/** The chain as the scan reads it, from whatever nodes. Hashes are lower-case hex. */
export interface TronChain {
  /** How many nodes have to show a block, and a payment in it, before it counts. */
  readonly confirmingNodes: number;
  /**
   * The solid blocks after `after`, in order, each the child of the one before it: as many as can be read in
   * a few seconds, at most `atMost`, and none if too few nodes have the next one yet. Every block is shown by
   * {@link confirmingNodes} nodes with the same hash, and is complete: its header, and an info for each of
   * its transactions. Its transfers are those that any of these nodes shows. To read ahead while these are
   * being committed, call it again with the last of them first.
   * @param after if its `hash` is null, any block with the next number is accepted
   * @throws ChainUnreadable if too few nodes respond or agree, or have a block that follows `after`. Try
   * again soon: a node that asked for a pause still gets it.
   */
  readBlocks(after: BlockRef, atMost: number, signal: AbortSignal): Promise<SolidBlock[]>;
  /**
   * The last solid block produced before `time`, with the same hash at {@link confirmingNodes} nodes; if the
   * whole chain is younger, block 0 with `hash` null and `time` itself.
   * @throws ChainUnreadable, also if too few nodes keep blocks that old, because payments in them could be
   * missed
   */
  findLastBlockBefore(time: Date, signal: AbortSignal): Promise<BlockRef & { time: Date }>;
  /**
   * Asks every node whether these transfers are in a block that was read. Only nodes that have this very
   * block count.
   * @returns a verdict for each transfer, in the same order
   */
  confirm(
    block: { number: number; hash: string },
    transfers: readonly TokenTransfer[],
    signal: AbortSignal,
  ): Promise<BlockVerdict[]>;
  /**
   * Transfers in blocks that are not solid yet, as a hint. It looks at each block after `number` once (or at
   * the newest), and skips some if there are more than a few. Call it once per interval; it usually costs one
   * request.
   * @returns the last block it looked at, which is far below `after` if that was a false height. If a node
   * fails, there is no hint; it doesn't throw.
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
  /** The name of the node it was read from, the first one if there are several. */
  node: string;
  transfers: UsdtTransfer[];
}

/** What identifies a transfer, and what it is worth to whom. */
export type TokenTransfer = Pick<UsdtTransfer, 'txHash' | 'logIndex' | 'toHash' | 'valueMicroUsdt'>;

/** What the nodes say about a transfer. */
export interface BlockVerdict {
  /** `confirmed`: enough nodes show it. `denied`: enough nodes have its block without it. `open`: neither. */
  outcome: 'confirmed' | 'denied' | 'open';
  says: NodeSays[];
}

/** A Transfer event of the USDT contract with a value above zero, in a transaction that succeeded. */
export interface UsdtTransfer {
  /** The names of the nodes that show it. */
  shownBy: string[];
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
 * A transfer that a call in a block asked for, before the block is solid. Its log position is unknown, and
 * transfers by other contracts aren't seen.
 */
export type SeenTransfer = Pick<UsdtTransfer, 'toHash' | 'valueMicroUsdt' | 'blockNumber'>;

interface ChainState {
  /** The newest solid block that enough sound nodes have reported; null before the first response. */
  solidBlockNumber: number | null;
  /** The node that the last block came from. */
  node: string | null;
  nodes: NodeState[];
}

/**
 * Too few nodes can be read at the moment, or they don't agree on the block after the last one taken. The
 * message has what each node says.
 */
export class ChainUnreadable extends Error {
  override name = 'ChainUnreadable';
}
