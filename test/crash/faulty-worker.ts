import { AsyncLocalStorage } from 'node:async_hooks';
import type { CardIssuanceActivities } from '../../activities/card-issuance.ts';
import type { CardNetwork } from '../../adapters/card-network/card-network.ts';
import { readConfig } from '../../config.ts';
import { siblingId } from '../../domain/ids.ts';
import { createLogger } from '../../logger.ts';
import { installRuntime } from '../../worker/install-runtime.ts';
import { startWorker } from '../../worker/start-worker.ts';
import { aroundCommits } from './around-commits.ts';
import { armFault, type FaultOptions, type Place } from './fault.ts';

/** A worker that is killed at one place of issueCard. Argument: JSON of this. */
export interface FaultyWorkerOptions extends FaultOptions {
  /** File with the bundled workflows. */
  codePath: string;
}

type Run = Omit<Place, 'when'> & { cardId: string };

const { codePath, ...faultOptions } = JSON.parse(process.argv[2] ?? '') as FaultyWorkerOptions;
const at = armFault(faultOptions);
/** The activity that is under way; the simulated network, in the same process, commits outside of one. */
const activity = new AsyncLocalStorage<Run>();
const runs = new Map<string, number>();

function nextRun(step: string, cardId: string): Run {
  const key = `${step} ${cardId}`;
  const run = (runs.get(key) ?? 0) + 1;
  runs.set(key, run);
  return { step, run, cardId };
}

const atCommit = (when: Place['when']) => async () => {
  const run = activity.getStore();
  if (run !== undefined) await at({ ...run, when }, run.cardId);
};
aroundCommits(atCommit('before commit'), atCommit('after commit'));

function aroundActivities(activities: CardIssuanceActivities): CardIssuanceActivities {
  const wrapped = Object.entries(activities).map(([step, effect]) => [
    step,
    (claimId: string, ...rest: unknown[]) => {
      const run = nextRun(step, siblingId('card', claimId));
      return activity.run(run, async () => {
        await at({ ...run, when: 'before' }, run.cardId);
        const result = await effect(claimId, ...rest);
        await at({ ...run, when: 'after' }, run.cardId);
        return result;
      });
    },
  ]);
  return Object.fromEntries(wrapped);
}

function aroundNetwork(network: CardNetwork): CardNetwork {
  async function call<A extends { status: string }>(
    step: string,
    cardId: string,
    ask: () => Promise<A>,
  ): Promise<A> {
    const run = nextRun(step, cardId);
    await at({ ...run, when: 'before' }, cardId);
    const answer = await ask();
    run.said = answer.status === 'accepted' ? 'accepted' : 'decided';
    const asking = activity.getStore();
    if (asking !== undefined) asking.said = run.said;
    await at({ ...run, when: 'after' }, cardId);
    return answer;
  }
  return {
    issueCard: (request) => call('issueCard', request.token, () => network.issueCard(request)),
    lookUpIssuance: (token) => call('lookUpIssuance', token, () => network.lookUpIssuance(token)),
  };
}

const config = readConfig();
const logger = createLogger('worker', config.logLevel);
installRuntime(logger);
await startWorker(config, logger, {
  workflowBundle: { codePath },
  around: { activities: aroundActivities, network: aroundNetwork },
});
