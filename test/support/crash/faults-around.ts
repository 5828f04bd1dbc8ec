import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';
import type { CardActivities } from '../../../activities/card-activities.ts';
import type { CardNetwork } from '../../../issuers/card-network.ts';
import { aroundCommits } from './around-commits.ts';
import { type FaultOptions, faultPoint, type Place } from './fault.ts';

type Run = Omit<Place, 'when'> & { claimId: string };

/** Makes this process die or freeze at places of its workflows: around an activity, a commit or a network call. */
export function faultsAround(
  options: FaultOptions,
  databaseUrl: string,
): {
  activities(activities: CardActivities): CardActivities;
  network(network: CardNetwork): CardNetwork;
} {
  const at = faultPoint(options, claimPartners(databaseUrl));
  /** The activity that is under way; the simulated network, in the same process, commits outside of one. */
  const activity = new AsyncLocalStorage<Run>();
  const runs = new Map<string, number>();

  function nextRun(step: string, claimId: string): Run {
    const key = `${step} ${claimId}`;
    const run = (runs.get(key) ?? 0) + 1;
    runs.set(key, run);
    return { step, run, claimId };
  }

  const atCommit = (when: Place['when']) => async () => {
    const run = activity.getStore();
    if (run !== undefined) await at({ ...run, when }, run.claimId);
  };
  aroundCommits(atCommit('before commit'), atCommit('after commit'));

  async function call<A extends { status: string }>(
    step: string,
    token: string,
    ask: () => Promise<A>,
  ): Promise<A> {
    const run = nextRun(step, activity.getStore()?.claimId ?? token);
    await at({ ...run, when: 'before' }, run.claimId);
    const answer = await ask();
    run.said = answer.status === 'accepted' ? 'accepted' : 'decided';
    const asking = activity.getStore();
    if (asking !== undefined) asking.said = run.said;
    await at({ ...run, when: 'after' }, run.claimId);
    return answer;
  }

  return {
    activities(activities) {
      const wrapped = Object.entries(activities).map(([step, effect]) => [
        step,
        (claimId: string, ...rest: unknown[]) => {
          const run = nextRun(step, claimId);
          return activity.run(run, async () => {
            await at({ ...run, when: 'before' }, claimId);
            const result = await effect(claimId, ...rest);
            await at({ ...run, when: 'after' }, claimId);
            return result;
          });
        },
      ]);
      return Object.fromEntries(wrapped);
    },
    network: (network) => ({
      ...network,
      issueCard: (request) => call('issueCard', request.token, () => network.issueCard(request)),
      lookUpIssuance: (token) => call('lookUpIssuance', token, () => network.lookUpIssuance(token)),
      transfer: (request) => call('transfer', request.token, () => network.transfer(request)),
      lookUpTransfer: (asked) => call('lookUpTransfer', asked.token, () => network.lookUpTransfer(asked)),
      changeCardStatus: (request) =>
        call('changeCardStatus', request.token, () => network.changeCardStatus(request)),
    }),
  };
}

function claimPartners(databaseUrl: string): (claimId: string) => Promise<string | undefined> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  const known = new Map<string, Promise<string | undefined>>();
  return (claimId) => {
    const partner =
      known.get(claimId) ??
      pool
        .query<{ partner_id: string }>('SELECT partner_id FROM idempotency_claim WHERE id = $1', [claimId])
        .then(({ rows }) => rows[0]?.partner_id);
    known.set(claimId, partner);
    return partner;
  };
}
