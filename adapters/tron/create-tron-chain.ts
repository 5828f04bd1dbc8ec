import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { TronConfig } from '../../config/tron.ts';
import { tronAddressHash } from '../../crypto/tron-address.ts';
import { keyHeaders } from './node-api.ts';
import { NodeProblem } from './node-health.ts';
import { type BlockRef, ChainUnreadable, type TronChain, type UsdtTransfer } from './tron-chain.ts';
import { BEHIND_BLOCKS, type ChainTimings, TronNode } from './tron-node.ts';

const TIMINGS: ChainTimings = {
  requestTimeoutMs: 5_000,
  patienceMs: 30_000,
  runMs: 5_000,
  overdueMs: 10_000,
  checkEveryMs: 60_000,
  corroborationMs: 5_000,
  firstBackoffMs: 1_000,
  mostBackoffMs: 10_000,
  recoveryMs: 60_000,
};

/**
 * The chain as the nodes of TRON_NODE_URLS report it. It reads from the first sound node, and switches to the next as soon as
 * one fails. The other nodes are checked in the background, so that the scan never waits for a bad one.
 * @param timings for tests
 */
export function createTronChain(
  config: Pick<TronConfig, 'nodes' | 'apiKey' | 'usdtContract'>,
  logger: Logger,
  timings: Partial<ChainTimings> = {},
): TronChain {
  const limits = { ...TIMINGS, ...timings };
  const nodes = openNodes(config, limits, logger);
  const closed = new AbortController();
  /** When to check each standby node next. */
  const nextChecksMs = new Map<TronNode, number>();
  let inUse: TronNode | null = null;
  let lastBlockAtMs = 0;

  /** The sound nodes first, those with the newest blocks leading; then those whose backoff has passed. */
  function inOrder(): TronNode[] {
    const newest = Math.max(
      ...nodes.map(({ health, heardNumber }) => (health.isSound ? (heardNumber ?? 0) : 0)),
    );
    const rank = ({ health, heardNumber }: TronNode) => {
      if (!health.isSound) return 2;
      return (heardNumber ?? newest) + BEHIND_BLOCKS < newest ? 1 : 0;
    };
    return nodes.filter(({ health }) => health.isDue).toSorted((a, b) => rank(a) - rank(b));
  }

  /** @returns undefined if it failed */
  async function attempt<T>(node: TronNode, asking: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    try {
      const answer = await asking;
      node.health.passed();
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof NodeProblem)) throw error;
      node.failed(error);
      return undefined;
    }
  }

  function use(node: TronNode): void {
    if (inUse === node) return;
    inUse?.health.placed();
    node.health.placed();
    inUse = node;
  }

  function checkOthers(after: BlockRef): void {
    if (inUse === null) return;
    for (const node of nodes) {
      const isDue = node.health.isDue && performance.now() >= (nextChecksMs.get(node) ?? 0);
      if (node === inUse || !isDue) continue;
      nextChecksMs.set(node, Number.POSITIVE_INFINITY);
      attempt(node, node.check(after, closed.signal), closed.signal)
        .catch((error) => {
          if (!closed.signal.aborted)
            logger.error({ err: error, node: node.name }, 'could not check a TRON node');
        })
        .finally(() => {
          const waitMs = node.health.isSound ? limits.checkEveryMs : limits.recoveryMs / 10;
          nextChecksMs.set(node, performance.now() + waitMs);
        });
    }
  }

  function unreadable(): ChainUnreadable {
    const why = nodes.map(({ name, health }) => `${name}: ${health.problem?.code ?? 'nothing newer'}`);
    return new ChainUnreadable(`cannot read from any TRON node (${why.join('; ')})`);
  }

  return {
    async readBlocks(after, atMost, signal) {
      checkOthers(after);
      let quiet: TronNode | null = null;
      for (const node of inOrder()) {
        // A sound node has no newer block, so don't wait for one that failed.
        if (quiet !== null && !node.health.isSound) break;
        const answer = await attempt(node, node.readAfter(after, atMost, signal), signal);
        if (answer === undefined) continue;
        if (answer.blocks.length > 0) {
          use(node);
          lastBlockAtMs = performance.now();
          return answer.blocks;
        }
        quiet ??= node;
        if (answer.isLevel && performance.now() - lastBlockAtMs < limits.overdueMs) break;
      }
      if (quiet === null) throw unreadable();
      if (inUse === null || !inUse.health.isSound) use(quiet);
      return [];
    },

    async findLastBlockBefore(time, signal) {
      for (const node of inOrder()) {
        const found = await attempt(node, node.findLastBefore(time, signal), signal);
        if (found !== undefined) return found;
      }
      throw unreadable();
    },

    async findDenied(block, transfers, signal) {
      const denied = new Map<UsdtTransfer, string>();
      const others = nodes.filter(
        ({ name, health }) =>
          name !== block.node && (health.isDue || health.problem?.state === 'contradicting'),
      );
      const enough = AbortSignal.timeout(limits.corroborationMs);
      const ask = async (node: TronNode) => {
        const asked = AbortSignal.any([signal, enough]);
        let denials: Awaited<ReturnType<TronNode['denies']>> | undefined;
        for (let isFirst = true; ; isFirst = false) {
          const asking = node.denies(block, transfers, asked).catch((error) => {
            if (error !== enough.reason) throw error;
            if (isFirst) throw new NodeProblem('failing', 'timeout');
            return null;
          });
          denials = await attempt(node, asking, signal);
          if (denials !== null || !node.health.isSound || enough.aborted) break;
          // The node may be about to get the block. Without this wait, nobody could contradict a node that invents one.
          await sleep(limits.corroborationMs / 10, undefined, { signal });
        }
        if (!denials?.length) return;
        for (const transfer of denials) denied.set(transfer, node.name);
        node.failed(new NodeProblem('contradicting', 'denies_payment'));
      };
      await Promise.all(others.map(ask));
      return denied;
    },

    async readUnsolid(after, signal) {
      const node = inOrder().find(({ hints }) => hints.isSound) ?? nodes.find(({ hints }) => hints.isDue);
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
        node.health.isSound || node === inUse ? (node.heardNumber ?? []) : [],
      );
      return {
        solidBlockNumber: heard.length === 0 ? null : Math.max(...heard),
        node: inUse?.name ?? null,
        nodes: nodes.map((node) => node.health.state(node === inUse)),
      };
    },

    close: () => {
      closed.abort();
      for (const node of nodes) node.close();
    },
  };
}

function openNodes(
  { nodes, apiKey, usdtContract }: Pick<TronConfig, 'nodes' | 'apiKey' | 'usdtContract'>,
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
    return new TronNode(name, urls, apiKey, usdtHash, timings, logger);
  });
}
