import type { NodeState } from '../../db/entities/deposits.ts';

/** The chain as the scan reads it, whatever nodes it comes from. Hashes are lower-case hex. */
export interface TronChain {
  /**
   * The solid blocks that follow `after`, in order, each the child of the one before it, as many as can be read in a few
   * seconds but at most `atMost`: none if no node has the next one yet.
   * A block is whole: its header, and as many infos as it has transactions, and theirs.
   * To take them while the next ones are being read, call it again with the last of them before they are committed.
   * @param after with `hash` null any block of the next number is taken
   * @throws ChainUnreadable if no node answers, or none has a block that follows. It costs nothing to try again soon: a
   * node that asked for a pause gets it.
   */
  readBlocks(after: BlockRef, atMost: number, signal: AbortSignal): Promise<SolidBlock[]>;
  /**
   * The last solid block that was made before `time`; if the whole chain is younger, block 0 with `hash` null and `time`
   * itself. @throws ChainUnreadable, also if no node has blocks that old: it has forgotten what may be ours.
   */
  findLastBlockBefore(time: Date, signal: AbortSignal): Promise<BlockRef & { time: Date }>;
  /**
   * Asks the other nodes whether they know these transfers, and waits a few seconds for those that are about to get the
   * block.
   * @returns of each that is denied the name of a node that does. A node that can't say denies nothing.
   */
  findDenied(
    block: SolidBlock,
    transfers: readonly UsdtTransfer[],
    signal: AbortSignal,
  ): Promise<Map<UsdtTransfer, string>>;
  /**
   * Transfers in blocks that are not solid yet: a hint. It looks once at each block, from after `number` on (or the
   * newest), and passes over some if there are more than a few. Mostly one call; call it once per interval.
   * @returns the last block looked at. Never throws for a node's sake: then there is no hint.
   */
  readUnsolid(
    after: number | null,
    signal: AbortSignal,
  ): Promise<{ number: number; transfers: SeenTransfer[] } | null>;
  /** What is known of the nodes, without asking them. */
  state(): ChainState;
  /** Ends its connections. */
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

/** Called for in a block that is not solid. Its place is not known, and tokens moved by other contracts aren't seen. */
export type SeenTransfer = Pick<UsdtTransfer, 'toHash' | 'valueMicroUsdt' | 'blockNumber'>;

interface ChainState {
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
