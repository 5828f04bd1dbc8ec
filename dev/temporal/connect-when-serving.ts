import { setTimeout as delay } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { endedAtOnce } from '../process/last-words.ts';
import type { Child } from '../process/start-child.ts';

const LONGEST_START_MS = 120_000;

/** Connects to the server that a process becomes; fails when the process ends instead. */
export async function connectWhenServing(address: string, server: Child): Promise<Connection> {
  let ended: string | undefined;
  void server.exited.then((how) => {
    ended = how;
  });
  const giveUpAt = Date.now() + LONGEST_START_MS;
  while (ended === undefined) {
    try {
      return await Connection.connect({ address, connectTimeout: '1s' });
    } catch (error) {
      if (Date.now() > giveUpAt) throw error;
      await delay(100);
    }
  }
  throw endedAtOnce(server, ended);
}
