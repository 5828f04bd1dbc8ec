import { setTimeout as sleep } from 'node:timers/promises';
import { isOutage } from '../../../api/http/errors.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import type { TokenChain } from './token-chain.ts';

const GIVE_UP_AFTER_MS = 240_000;

/** What the model's clients use of a stack beside its API: the database, and Temporal. */
export interface ServiceParts extends Pick<TestStack, 'orm' | 'operator' | 'client'> {
  config: Pick<TestStack['config'], 'taskQueuePrefix'>;
  createPartner(name: string): Promise<Pick<TestPartner, 'id' | 'keys'>>;
}

/** The running service as a model's clients meet it. */
export interface Service {
  stack: ServiceParts;
  chain: TokenChain;
  /** http://host:port of an API process. */
  origin: string;
  /** While something is killed and starts again connections break, and answers are lost. */
  troubled: boolean;
  /** How often it answered what: by status, or `none` for a connection that broke or took too long. */
  answers: Map<string, number>;
  /** What clients and operators wait for: requests without an answer, decisions that are yet to be carried out. */
  waiting: Set<{ sinceMs: number }>;
  /** Kills -9 one of its processes and starts it again. @returns what it was. Left out: whoever runs the service does that */
  kill?(): Promise<string>;
  /** Where others kill its processes: has them wait until the function it returns is called. Returns when all are back. */
  pause?(): Promise<() => void>;
}

/** Reads or changes the database by itself, again where the server is away. The work has to be repeatable. */
export async function untilThere<T>(work: () => Promise<T>): Promise<T> {
  const giveUpAt = Date.now() + GIVE_UP_AFTER_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isOutage(error) || Date.now() > giveUpAt) throw error;
      await sleep(100);
    }
  }
}

/** Lets those who kill the service's processes know how long this has been going on. */
export async function waitFor<T>({ waiting }: Service, work: () => Promise<T>): Promise<T> {
  const entry = { sinceMs: Date.now() };
  waiting.add(entry);
  try {
    return await work();
  } finally {
    waiting.delete(entry);
  }
}
