import { setTimeout as sleep } from 'node:timers/promises';
import { isOutage } from '../../../api/http/errors.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import type { TokenChain } from './token-chain.ts';

const GIVE_UP_AFTER_MS = 240_000;

/** What the model's clients use of a stack besides its API: the database and Temporal. */
export interface ServiceParts extends Pick<TestStack, 'orm' | 'operator' | 'client'> {
  config: Pick<TestStack['config'], 'taskQueuePrefix'>;
  createPartner(name: string): Promise<Pick<TestPartner, 'id' | 'keys'>>;
}

/** The running service as the model's clients see it. */
export interface Service {
  stack: ServiceParts;
  chain: TokenChain;
  /** The origin of an API process: http://host:port. */
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
