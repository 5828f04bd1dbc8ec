import type { Logger } from 'pino';
import type { ChainName } from '../domain/deposit.ts';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { isAnyAwaited, markConfirming } from './chain-scan.ts';
import { findOwners } from './take-blocks.ts';
import type { TronChain } from './tron/tron-chain.ts';
import { type AskedAgain, readUnconfirmed, settleUnconfirmed } from './unconfirmed-payments.ts';

interface UnsolidDependencies {
  orm: Orm;
  tron: { network: ChainName; chain: TronChain };
  logger: Logger;
  /** Called when deposits have changed. */
  changed(): void;
}

/**
 * Looks for payments in blocks that are not solid yet, to show their deposits as `confirming`. This is only a
 * hint.
 */
export class UnsolidBlocks {
  readonly #dependencies: UnsolidDependencies;
  /** The last block looked at, kept between rounds. */
  #lookedAt: number | null = null;
  #isLooking = false;

  constructor(dependencies: UnsolidDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * The scan doesn't wait for it, because a hint must not delay it. @param solidNumber the last block that
   * the scan took
   */
  async look(solidNumber: number, signal: AbortSignal): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    await this.#mark(solidNumber, signal)
      .catch((error: unknown) => {
        if (signal.aborted) return;
        this.#dependencies.logger.warn(
          { error: describeError(error) },
          'could not look for payments in the latest blocks',
        );
      })
      .finally(() => {
        this.#isLooking = false;
      });
  }

  async #mark(solidNumber: number, signal: AbortSignal): Promise<void> {
    const { orm, tron, changed } = this.#dependencies;
    const em = orm.em.fork();
    if (!(await isAnyAwaited(em, tron.network))) return;
    const seen = await tron.chain.readUnsolid(this.#lookedAt ?? solidNumber, signal);
    if (seen === null) return;
    this.#lookedAt = seen.number;
    const blocks = new Map(seen.transfers.map(({ toHash, blockNumber }) => [toHash, blockNumber]));
    const owners = await findOwners(em, tron.network, blocks.keys());
    if (owners.size === 0) return;
    for (const hash of blocks.keys()) if (!owners.has(hash)) blocks.delete(hash);
    if ((await markConfirming(orm, tron.network, blocks)) > 0) changed();
  }
}

/** How often the nodes are asked about the same payments, at most. */
const ASK_EVERY_MS = 5_000;

interface UnconfirmedDependencies {
  orm: Orm;
  tron: { network: ChainName; scanIntervalMs: number; chain: TronChain };
  logger: Logger;
  /** Called when there are payments to judge. */
  changed(): void;
}

/**
 * Asks the nodes again about payments that too few of them have shown, until enough show them or deny them.
 */
export class UnconfirmedPayments {
  readonly #dependencies: UnconfirmedDependencies;
  #isAsking = false;
  #askAtMs = 0;

  constructor(dependencies: UnconfirmedDependencies) {
    this.#dependencies = dependencies;
  }

  /** The scan doesn't wait for it, because it must not be delayed. */
  async ask(signal: AbortSignal): Promise<void> {
    if (this.#isAsking || performance.now() < this.#askAtMs) return;
    this.#isAsking = true;
    await this.#askAll(signal)
      .catch((error: unknown) => {
        if (signal.aborted) return;
        this.#dependencies.logger.warn(
          { error: describeError(error) },
          'could not ask the nodes about unconfirmed payments; trying again',
        );
      })
      .finally(() => {
        this.#askAtMs =
          performance.now() + Math.min(ASK_EVERY_MS, this.#dependencies.tron.scanIntervalMs * 2);
        this.#isAsking = false;
      });
  }

  async #askAll(signal: AbortSignal): Promise<void> {
    const { orm, tron, logger, changed } = this.#dependencies;
    const payments = await readUnconfirmed(orm.em.fork(), tron.network);
    const ofBlocks = Map.groupBy(payments, ({ blockHash }) => blockHash);
    for (const [hash, ofBlock] of ofBlocks) {
      const number = ofBlock[0]?.blockNumber ?? 0;
      const verdicts = await tron.chain.confirm({ number, hash }, ofBlock, signal);
      const asked: AskedAgain[] = ofBlock.flatMap((payment, index) => {
        const verdict = verdicts[index];
        return verdict === undefined ? [] : [{ payment, ...verdict }];
      });
      await settleUnconfirmed(orm, tron.network, asked);
      for (const { payment, outcome, says } of asked) {
        const { txHash, logIndex, depositId } = payment;
        const what = { txHash, logIndex, depositId, nodes: says };
        if (outcome === 'denied')
          logger.error(what, 'a TRON node showed a payment that enough others deny; it is not credited');
        if (outcome === 'confirmed') logger.info(what, 'enough TRON nodes show a payment that one denied');
      }
      if (asked.some(({ outcome }) => outcome === 'confirmed')) changed();
    }
  }
}
