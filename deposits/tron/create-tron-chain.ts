import type { Logger } from 'pino';
import type { TronConfig } from '../../platform/config/tron.ts';
import { tronAddressHash } from '../../platform/crypto/tron-address.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { agreedOn, describeWitness, nextHashes, type Run, whatIsMissing } from './agreement.ts';
import { keyHeaders, openNodeApi } from './node-api.ts';
import { NodeProblem } from './node-health.ts';
import { inOrder, isFarAhead } from './node-order.ts';
import {
  type BlockRef,
  type BlockVerdict,
  ChainUnreadable,
  type SolidBlock,
  type TokenTransfer,
  type TronChain,
} from './tron-chain.ts';
import { type ChainTimings, TronNode } from './tron-node.ts';

const TIMINGS: ChainTimings = {
  nowMs: () => performance.now(),
  requestTimeoutMs: 5_000,
  patienceMs: 30_000,
  runMs: 5_000,
  overdueMs: 10_000,
  checkEveryMs: 60_000,
  confirmationMs: 30_000,
  rememberedMs: 60_000,
  firstBackoffMs: 1_000,
  maxBackoffMs: 10_000,
  recoveryMs: 60_000,
};

/**
 * Blocks to read again while too few nodes agree on the first of them: every few seconds if they contradict
 * each other, and once a minute if some are missing. So a node is asked no more often than at the head of the
 * chain.
 */
const MAX_CONTRADICTED = 2;
const MAX_UNCONFIRMED = 20;

/** What createTronChain needs of a configuration. */
type ChainConfig = Pick<TronConfig, 'nodes' | 'confirmingNodes' | 'apiKey' | 'usdtContract'>;

/**
 * The chain as the nodes of TRON_NODE_URLS report it. It reads each block from as many sound nodes as have to
 * confirm it, and takes what they agree on; it switches to the next node as soon as one fails. The other
 * nodes are checked in the background, so that the scan never waits for a bad one.
 * @param timings for tests
 */
export function createTronChain(
  config: ChainConfig,
  logger: Logger,
  timings: Partial<ChainTimings> = {},
): TronChain {
  const { confirmingNodes } = config;
  const limits = { ...TIMINGS, ...timings };
  // One node is enough, so no other is waited for.
  if (confirmingNodes === 1) limits.rememberedMs = 0;
  const nodes = openNodes(config, limits, logger);
  const closed = new AbortController();
  /** When to check each standby node next. */
  const nextChecksMs = new Map<TronNode, number>();
  /** The nodes that the last block was read from. */
  let inUse: TronNode[] = [];
  let lastBlockAtMs = 0;
  /**
   * The block after which too few nodes agree on what comes next, and what each of them says; null if they
   * agree.
   */
  let unagreed: { after: number; says: string[]; most: number } | null = null;

  /** @returns undefined if it failed */
  async function attempt<T>(node: TronNode, asking: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    try {
      const response = await asking;
      if (isFarAhead(node, nodes, confirmingNodes)) throw new NodeProblem('contradicting', 'too_far_ahead');
      node.health.passed();
      return response;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof NodeProblem)) throw error;
      node.failed(error);
      return undefined;
    }
  }

  function use(now: TronNode[]): void {
    for (const node of nodes) if (inUse.includes(node) !== now.includes(node)) node.health.placed();
    inUse = now;
  }

  function checkOthers(after: BlockRef): void {
    if (inUse.length === 0) return;
    for (const node of nodes) {
      const isDue = node.health.isDue && limits.nowMs() >= (nextChecksMs.get(node) ?? 0);
      if (inUse.includes(node) || !isDue) continue;
      nextChecksMs.set(node, Number.POSITIVE_INFINITY);
      attempt(node, node.check(after, closed.signal), closed.signal)
        .catch((error) => {
          if (!closed.signal.aborted)
            logger.error({ error: describeError(error), node: node.name }, 'could not check a TRON node');
        })
        .finally(() => {
          const waitMs = node.health.isSound ? limits.checkEveryMs : limits.recoveryMs / 10;
          nextChecksMs.set(node, limits.nowMs() + waitMs);
        });
    }
  }

  /** @param says what each node says about the block after that one */
  function unreadable(after: number, says: readonly string[]): ChainUnreadable {
    const what =
      confirmingNodes === 1
        ? 'cannot read from any TRON node'
        : `fewer than ${confirmingNodes} TRON nodes agree on block ${after + 1}`;
    return new ChainUnreadable(
      `${what} (${nodes.map(({ name }, index) => `${name}: ${says[index]}`).join('; ')})`,
    );
  }

  /** How many nodes to ask next, after those that have responded. */
  function howManyToAsk(runs: readonly Run[], next: TronNode | undefined): number {
    if (runs.length < confirmingNodes) return confirmingNodes - runs.length;
    // Don't wait for one that failed, unless the others contradict each other. If all of them say that there
    // is no newer block, ask no other.
    if (next?.health.isSound !== true && nextHashes(runs).size < 2) return 0;
    const isLevel = runs.every((run) => run.isLevel) && limits.nowMs() - lastBlockAtMs < limits.overdueMs;
    return isLevel ? 0 : 1;
  }

  /** Reads the blocks after that one from several nodes at once. @returns those that responded */
  async function readFrom(
    asked: readonly TronNode[],
    after: BlockRef,
    atMost: number,
    signal: AbortSignal,
  ): Promise<Run[]> {
    const runs = asked.map(async (node): Promise<Run[]> => {
      const response = await attempt(node, node.readAfter(after, atMost, signal), signal);
      return response === undefined ? [] : [{ node, ...response }];
    });
    return (await Promise.all(runs)).flat();
  }

  /** The next blocks if enough nodes agree on them. Nodes that have others instead are named. */
  function takeAgreed(runs: readonly Run[]): SolidBlock[] {
    const { blocks, shownBy } = agreedOn(runs, confirmingNodes);
    if (blocks.length === 0) return [];
    for (const { node, blocks: own } of runs) {
      if (!blocks.some(({ hash }, at) => own[at] !== undefined && own[at].hash !== hash)) continue;
      node.forget();
      node.failed(new NodeProblem('contradicting', 'other_chain'));
    }
    use(shownBy);
    lastBlockAtMs = limits.nowMs();
    unagreed = null;
    return blocks;
  }

  /**
   * Asks a node whether a block has these transfers. @returns why it is no witness, or which of them it shows
   */
  async function ask(
    node: TronNode,
    block: { number: number; hash: string },
    transfers: readonly TokenTransfer[],
    signal: AbortSignal,
  ): Promise<{ node: TronNode; shows: boolean[] } | { node: TronNode; why: string }> {
    const { health } = node;
    if (!health.isDue && health.problem?.state !== 'contradicting')
      return { node, why: health.problem?.code ?? 'not asked' };
    const enough = AbortSignal.timeout(limits.confirmationMs);
    const asking = node.readBlock(block, AbortSignal.any([signal, enough])).catch((error) => {
      throw error === enough.reason ? new NodeProblem('failing', 'timeout') : error;
    });
    const shown = await attempt(node, asking, signal);
    if (shown === undefined) return { node, why: health.problem?.code ?? 'no answer' };
    if (shown === null) return { node, why: 'does not have the block' };
    return { node, shows: transfers.map((transfer) => shown.transfers.some((one) => isSame(one, transfer))) };
  }

  return {
    confirmingNodes,

    async readBlocks(after, atMost, signal) {
      checkOthers(after);
      const most = unagreed?.after === after.number ? Math.min(atMost, unagreed.most) : atMost;
      // What a node said within the last minute counts, even if it fails now.
      const runs = nodes.flatMap((node): Run[] => {
        const blocks = node.remembered(after);
        return blocks === null ? [] : [{ node, blocks, isLevel: false }];
      });
      const order = inOrder(nodes).filter((node) => !runs.some((run) => run.node === node));
      for (;;) {
        const blocks = takeAgreed(runs);
        if (blocks.length > 0) return blocks;
        const asked = order.splice(0, howManyToAsk(runs, order[0]));
        if (asked.length === 0) break;
        runs.push(...(await readFrom(asked, after, most, signal)));
      }
      const missing = whatIsMissing(runs, confirmingNodes);
      const says = nodes.map((node) => describeWitness(node, after));
      const maxNext = missing === 'contradicted' ? MAX_CONTRADICTED : MAX_UNCONFIRMED;
      unagreed = missing === 'level' ? null : { after: after.number, says, most: maxNext };
      // What contradicts itself has to be read anew: all may be right next time.
      if (missing === 'contradicted') for (const node of nodes) node.forget();
      if (missing === 'contradicted' || missing === 'unreadable') throw unreadable(after.number, says);
      if (!inUse.some(({ health }) => health.isSound))
        use(runs.slice(0, confirmingNodes).map(({ node }) => node));
      return [];
    },

    async findLastBlockBefore(time, signal) {
      for (const node of inOrder(nodes)) {
        const found = await attempt(node, node.findLastBefore(time, signal), signal);
        if (found === undefined) continue;
        const others = nodes.filter((other) => other !== node && other.health.isDue);
        const confirmed = await Promise.all(
          others
            .slice(0, confirmingNodes === 1 ? 0 : others.length)
            .map((other) => attempt(other, other.isLastBefore(time, found, signal), signal)),
        );
        if (1 + confirmed.filter((isSame) => isSame === true).length >= confirmingNodes) return found;
      }
      throw unreadable(
        0,
        nodes.map((node) => describeWitness(node, { number: 0, hash: null })),
      );
    },

    async confirm(block, transfers, signal) {
      const words = await Promise.all(nodes.map((node) => ask(node, block, transfers, signal)));
      return transfers.map((_, index): BlockVerdict => {
        const shows = words.filter((word) => 'shows' in word && word.shows[index] === true);
        const denies = words.filter((word) => 'shows' in word && word.shows[index] === false);
        const isShown = shows.length >= confirmingNodes;
        const isDenied = denies.length >= confirmingNodes;
        if (isShown && !isDenied)
          for (const { node } of denies) node.failed(new NodeProblem('contradicting', 'denies_payment'));
        if (isDenied && !isShown)
          for (const { node } of shows) node.failed(new NodeProblem('contradicting', 'invents_payment'));
        return {
          outcome: isShown === isDenied ? 'open' : isShown ? 'confirmed' : 'denied',
          says: words.map((word) => ({
            node: word.node.name,
            says: 'why' in word ? word.why : word.shows[index] === true ? 'shows it' : 'denies it',
          })),
        };
      });
    },

    async readUnsolid(after, signal) {
      const node =
        inOrder(nodes).find(({ hints }) => hints.isSound) ?? nodes.find(({ hints }) => hints.isDue);
      if (node === undefined) return null;
      try {
        const seen = await node.readUnsolid(after, signal);
        node.hints.passed();
        return seen;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof NodeProblem)) throw error;
        node.hints.failed(error);
        return null;
      }
    },

    state: () => {
      const heard = nodes.flatMap((node) =>
        node.health.isSound || inUse.includes(node) ? (node.newest?.number ?? []) : [],
      );
      // The newest block that enough nodes have.
      heard.sort((a, b) => b - a);
      return {
        solidBlockNumber: heard[Math.min(confirmingNodes, heard.length) - 1] ?? null,
        node: inUse[0]?.name ?? null,
        nodes: nodes.map((node, index) => ({
          ...node.health.state(inUse.includes(node)),
          says: unagreed?.says[index] ?? null,
        })),
      };
    },

    close: () => {
      closed.abort();
      for (const node of nodes) node.close();
    },
  };
}

function isSame(one: TokenTransfer, other: TokenTransfer): boolean {
  return (
    one.txHash === other.txHash &&
    one.logIndex === other.logIndex &&
    one.toHash === other.toHash &&
    one.valueMicroUsdt === other.valueMicroUsdt
  );
}

function openNodes(
  { nodes, apiKey, usdtContract }: ChainConfig,
  timings: ChainTimings,
  logger: Logger,
): TronNode[] {
  const usdtHash = tronAddressHash(usdtContract)?.toString('hex');
  if (usdtHash === undefined) throw new TypeError('the contract is not a TRON address');
  const isKeySent = (url: string) => Object.keys(keyHeaders(url, apiKey)).length > 0;
  if (apiKey !== null && !nodes.some(({ full, solidity }) => isKeySent(full) || isKeySent(solidity)))
    logger.warn('TRON_API_KEY is not used: no node of TRON_NODE_URLS is at https://….trongrid.io');
  const hosts = nodes.map(({ full }) => new URL(full).host);
  return nodes.map((urls, at) => {
    const host = new URL(urls.full).host;
    const name = hosts.indexOf(host) === at ? host : `${host} (${at + 1})`;
    const api = openNodeApi(urls, apiKey, timings.requestTimeoutMs);
    return new TronNode({ name, api, usdtHash }, timings, logger);
  });
}
