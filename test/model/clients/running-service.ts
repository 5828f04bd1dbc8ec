import { isOutage } from '../../../api/http/errors.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import type { TokenChain } from './token-chain.ts';

/** Some minutes, at ten a second: whoever runs a script without mocha has no other limit. */
export const MAX_TRIES = 2_400;

export interface ServiceParts extends Pick<TestStack, 'orm' | 'operator' | 'client'> {
  config: Pick<TestStack['config'], 'taskQueuePrefix'>;
  createPartner(name: string): Promise<Pick<TestPartner, 'id' | 'keys'>>;
}

export interface Service {
  stack: ServiceParts;
  chain: TokenChain;
  origin: string;
  /** Whether connections may break and answers get lost, because processes are killed and restarted. */
  troubled: boolean;
  /** The number of answers by status; `none` is a connection that broke or took too long. */
  answers: Map<string, number>;
  /** What clients and operators wait for: requests without an answer, decisions that are not yet applied. */
  waiting: Set<{ sinceMs: number }>;
  /** Lets the time of an authorization be over, by our id or the network's. Left out where nobody can. */
  lapse?(authorization: string): Promise<void>;
  /** Kills one of its processes with -9 and restarts it. @returns which. Left out if whoever runs the service does that */
  kill?(): Promise<string>;
  /** If others kill its processes: pauses them until the returned function is called. Returns once all processes are back. */
  pause?(): Promise<() => void>;
}

/** Repeats work on the database until the server is there. The work must be safe to repeat. */
export async function untilThere<T>(work: () => Promise<T>): Promise<T> {
  let tries = 0;
  const { done } = await until('the database is there', async () => {
    try {
      return { done: await work() };
    } catch (error) {
      tries += 1;
      if (!isOutage(error) || tries > MAX_TRIES) throw error;
      return null;
    }
  });
  return done;
}

/** Registers the work as waiting, so that whoever kills processes knows how long it has taken. */
export async function waitFor<T>({ waiting }: Service, work: () => Promise<T>): Promise<T> {
  const entry = { sinceMs: Date.now() };
  waiting.add(entry);
  try {
    return await work();
  } finally {
    waiting.delete(entry);
  }
}
