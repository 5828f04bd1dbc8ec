import type { Logger } from 'pino';
import type { ChainName } from '../domain/deposit.ts';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import type { TronChain } from './tron/tron-chain.ts';
import { type AskedAgain, readUnconfirmed, settleUnconfirmed } from './unconfirmed-payments.ts';

/** How often the nodes are asked about the same payments, at most. */
const ASK_EVERY_MS = 5_000;

interface UnconfirmedDependencies {
  orm: Orm;
  tron: { network: ChainName; scanIntervalMs: number; chain: TronChain };
  logger: Logger;
  /** Called when there are payments to judge. */
  changed(): void;
}

/** Asks the nodes again about payments that too few of them have shown, until enough show them or deny them. */
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
        return verdict === undefined ? [] : [{ payment, outcome: verdict.outcome, says: verdict.says }];
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
