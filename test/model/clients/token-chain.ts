import type { FaultRule } from '../../../dev/fault-rules.ts';
import { addressHash } from '../../../dev/tron/address.ts';
import { HandChain } from '../../../dev/tron/chain.ts';
import { type Draft, FAKE_USDT_CONTRACT } from '../../../dev/tron/drafts.ts';
import { type FakeNode, startFakeNode } from '../../../dev/tron/fake-node.ts';
import type { Fault } from '../../../dev/tron/faults.ts';
import type { Transaction } from '../../../dev/tron/transaction.ts';
import type { Transfer } from '../rules/deposit.ts';

const SOLID_AFTER_BLOCKS = 3;
const BLOCK_EVERY_MS = 250;
/** Every block with this interval is replaced by a fork, together with the one before it. */
const FORK_EVERY = 7;
const USDT = addressHash(FAKE_USDT_CONTRACT);
/** Transfer(address,address,uint256): keccak-256 of the signature. */
const TRANSFER = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** The private chain that deposits are paid on, with two nodes. While it is awake, it makes blocks and forks. */
export interface TokenChain {
  nodes: readonly FakeNode[];
  /** Starts making blocks. @param trouble the first node's faults and lag */
  wake(trouble: { rule: FaultRule<Fault>; lagBlocks: number } | null): void;
  /** Sends a transaction, which a later block contains. @param sentAt the time on the run's clock */
  send(draft: Draft, sentAt: number): void;
  /** Ends forks, faults and blocks, with everything sent being solid. @returns what was paid since the last call */
  settle(): Settled;
  stop(): Promise<void>;
}

export interface Settled {
  solidNumber: number;
  solidTimeMs: number;
  /** In the chain's order, by the recipient's 20 bytes in hex. */
  transfers: Map<string, Transfer[]>;
}

export async function startTokenChain(): Promise<TokenChain> {
  const chain = new HandChain({ solidAfterBlocks: SOLID_AFTER_BLOCKS, everyMs: 1 });
  const first = await startFakeNode(chain, { name: 'a' });
  const nodes = [first, await startFakeNode(chain, { name: 'b', isBare: true })];
  const sentAt = new Map<string, number>();
  let waiting: { draft: Draft; sentAt: number }[] = [];
  let awake: NodeJS.Timeout | undefined;
  let read = 0;

  const mine = (): void => {
    const time = new Date(Math.max(Date.now(), chain.head.timeMs + 1));
    const sent = waiting;
    waiting = [];
    const { transactions } = chain.mine(
      sent.map(({ draft }) => draft),
      { time },
    );
    for (const [index, { id }] of transactions.entries()) sentAt.set(id, sent[index]?.sentAt ?? 0);
  };

  /** Replaces the last two blocks with three, the last of which has the content of both in reverse order. */
  const fork = (): void => {
    const last = [chain.headNumber() - 1, chain.headNumber()];
    const content = last.flatMap((number) => chain.block(number)?.transactions ?? []);
    chain.fork(last.length, [[], [], content.toReversed()]);
  };

  return {
    nodes,
    wake(trouble) {
      if (trouble !== null) {
        first.faults.add(trouble.rule);
        first.view.lagBlocks = trouble.lagBlocks;
      }
      awake ??= setInterval(() => {
        mine();
        if (chain.headNumber() % FORK_EVERY === 0) fork();
      }, BLOCK_EVERY_MS);
    },
    send(draft, sentAtTick) {
      waiting.push({ draft, sentAt: sentAtTick });
    },
    settle() {
      clearInterval(awake);
      awake = undefined;
      first.faults.clear();
      first.view.reform();
      mine();
      const { number: solidNumber, timeMs: solidTimeMs } = chain.solidify();
      const transfers = new Map<string, Transfer[]>();
      while (read < solidNumber) {
        const block = chain.block(++read);
        for (const transaction of block?.transactions ?? []) {
          for (const transfer of transfersOf(transaction)) {
            const { toHash, microUsdt, logIndex } = transfer;
            const paid = transfers.get(toHash) ?? [];
            transfers.set(toHash, paid);
            paid.push({
              ...{ txHash: transaction.id, logIndex, microUsdt },
              ...{
                blockNumber: read,
                blockTimeMs: block?.timeMs ?? 0,
                sentAt: sentAt.get(transaction.id) ?? 0,
              },
            });
          }
        }
      }
      return { solidNumber, solidTimeMs, transfers };
    },
    async stop() {
      clearInterval(awake);
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

/** The transfers of a transaction (docs/decisions/tron-nodes.md): it succeeded, with logs of the token above zero. */
function transfersOf({ draft }: Transaction): { toHash: string; microUsdt: bigint; logIndex: number }[] {
  if (draft.result !== 'SUCCESS') return [];
  return draft.logs
    .map(({ address, topics, data }, logIndex) => {
      const isTransfer = address === USDT && topics[0] === TRANSFER;
      return {
        toHash: topics[2]?.slice(24) ?? '',
        microUsdt: isTransfer ? BigInt(`0x${data}`) : 0n,
        logIndex,
      };
    })
    .filter(({ microUsdt }) => microUsdt > 0n);
}
