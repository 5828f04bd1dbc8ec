import type { Logger } from 'pino';
import type { ChainName } from '../domain/deposit.ts';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { isAnyAwaited, markConfirming } from './chain-scan.ts';
import { findOwners } from './take-blocks.ts';
import type { TronChain } from './tron/tron-chain.ts';

interface UnsolidDependencies {
  orm: Orm;
  tron: { network: ChainName; chain: TronChain };
  logger: Logger;
  /** Called when deposits have changed. */
  changed(): void;
}

/** Looks for payments in blocks that are not solid yet, to show their deposits as `confirming`. This is only a hint. */
export class UnsolidBlocks {
  readonly #dependencies: UnsolidDependencies;
  /** The last block looked at, kept between rounds. */
  #lookedAt: number | null = null;
  #isLooking = false;

  constructor(dependencies: UnsolidDependencies) {
    this.#dependencies = dependencies;
  }

  /** The scan doesn't wait for it, because a hint must not delay it. @param solidNumber the last block that the scan took */
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
