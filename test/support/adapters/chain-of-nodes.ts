import { Writable } from 'node:stream';
import { type Logger, pino } from 'pino';
import { createTronChain } from '../../../deposits/tron/create-tron-chain.ts';
import {
  type BlockRef,
  ChainUnreadable,
  type SolidBlock,
  type TronChain,
} from '../../../deposits/tron/tron-chain.ts';
import type { ChainTimings } from '../../../deposits/tron/tron-node.ts';
import { HandChain } from '../../../dev/tron/chain.ts';
import { FAKE_USDT_CONTRACT } from '../../../dev/tron/drafts.ts';
import { type FakeNode, type FakeNodeOptions, startFakeNode } from '../../../dev/tron/fake-node.ts';

export const ALICE = 'TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6';
export const ALICE_HASH = 'e2e1a54926527fbb4e4420de4c6bab82beaee24d';
export const BOB = 'TPjjvMwjPoDC32V2dGDYTkLH4E5LAtBZ6C';
export const BOB_HASH = '9705bf55c3dcc6d277ebb8fe2a68762268822ba2';
export const NEVER = new AbortController().signal;

/** So short that a node falls out and comes back within a few reads. */
const TIMINGS: Omit<ChainTimings, 'nowMs'> = {
  ...{
    requestTimeoutMs: 20_000,
    patienceMs: 100,
    runMs: 20_000,
    overdueMs: 50,
    checkEveryMs: 10,
    confirmationMs: 5_000,
    rememberedMs: 1_000,
  },
  firstBackoffMs: 1,
  maxBackoffMs: 50,
  recoveryMs: 200,
};
/** How much time passes for the nodes' health with each read. */
const READ_MS = 10;
const MAX_READS = 1_000;

/** A chain, the nodes that show it, in the order they are asked, and the adapter over them. */
export async function startChainOfNodes(
  nodeOptions: FakeNodeOptions[] = [{}],
  {
    timings = {},
    confirmingNodes = 1,
    chain = new HandChain({ solidAfterBlocks: 2 }),
  }: { timings?: Partial<ChainTimings>; chain?: HandChain; confirmingNodes?: number } = {},
) {
  const nodes = await Promise.all(nodeOptions.map((one) => startFakeNode(chain, one)));
  const { log, logger } = keptLog();
  let nowMs = 0;
  const tron = createTronChain(
    {
      nodes: nodes.map(({ url }) => {
        const [full = '', solidity = full] = url.split('|');
        return { full, solidity };
      }),
      confirmingNodes,
      apiKey: null,
      usdtContract: FAKE_USDT_CONTRACT,
    },
    logger,
    { ...TIMINGS, ...timings, nowMs: () => nowMs },
  );
  /** For the nodes' health: it only passes here and with each read. */
  const passTime = (ms: number) => {
    nowMs += ms;
  };
  const stop = async () => {
    tron.close();
    await Promise.all(nodes.map((node) => node.stop()));
  };
  const readBlocks: TronChain['readBlocks'] = (...asked) => {
    passTime(READ_MS);
    return tron.readBlocks(...asked);
  };
  return { chain, nodes, tron: { ...tron, readBlocks }, log, passTime, stop };
}

export type ChainOfNodes = Awaited<ReturnType<typeof startChainOfNodes>>;

export function keptLog(): { log: Record<string, unknown>[]; logger: Logger } {
  const log: Record<string, unknown>[] = [];
  const stream = new Writable({
    write: (line, _encoding, done) => {
      log.push(JSON.parse(String(line)));
      done();
    },
  });
  return { log, logger: pino(stream) };
}

export function nameOf(node: FakeNode | undefined): string {
  return new URL((node?.url ?? '').split('|')[0] ?? '').host;
}

/** Reads as the scan does, until it has block `last`, whatever nodes do on the way. */
export async function readUpTo(
  tron: TronChain,
  after: BlockRef,
  last: number,
  atMost = 100,
): Promise<SolidBlock[]> {
  const blocks: SolidBlock[] = [];
  let reads = 0;
  for (let from = after; from.number < last; from = blocks.at(-1) ?? after) {
    if (reads++ > MAX_READS)
      throw new Error(`stuck after block ${from.number}: ${JSON.stringify(tron.state())}`);
    const read = await tron.readBlocks(from, Math.min(atMost, last - from.number), NEVER).catch((error) => {
      if (error instanceof ChainUnreadable) return [];
      throw error;
    });
    blocks.push(...read);
  }
  return blocks;
}
