import assert from 'node:assert/strict';
import type { Config } from '../../../config/service.ts';
import { freePort } from '../../../dev/free-port.ts';
import type { Mode } from '../../../domain/mode.ts';
import type { Answer, TestPartner } from '../stack.ts';
import { askAt } from './operations.ts';
import { kill, startApiProcess } from './processes.ts';

/** When the only COMMIT of a request meets its end, and whether it took place. */
export const ENDS = {
  'before 1': false,
  'after 1': true,
  'cut before 1': false,
  'cut after 1': true,
} as const;
export type End = keyof typeof ENDS;

/** The same, as a title names it. */
export const END_TITLES: Record<End, string> = {
  'before 1': 'its process is killed -9 before the COMMIT',
  'after 1': 'its process is killed -9 after the COMMIT',
  'cut before 1': 'its connection is cut before the COMMIT',
  'cut after 1': 'its connection is cut after the COMMIT',
};

/** Sends a request to an API process of its own, which is killed -9, or loses its connection, before it has answered. */
export function askUntilEnd(
  ofStack: Config,
  folder: string,
  end: End,
  {
    mode,
    ...request
  }: { mode: Mode; partner: TestPartner; method?: string; path: string; body: object; key: string },
): Promise<void> {
  return sendUntilEnd(ofStack, folder, end, ({ host, port }) =>
    askAt(`http://${host}:${port}`, { ...request, case: { mode } }),
  );
}

/** The same with any request. @param send sends it to the API process of this configuration */
export async function sendUntilEnd(
  ofStack: Config,
  folder: string,
  end: End,
  send: (config: Config) => Promise<Answer>,
): Promise<void> {
  const config = { ...ofStack, port: await freePort() };
  const api = await startApiProcess(config, folder, {
    execArgv: ['--import', './test/support/crash/die-at-commit.ts'],
    env: { DIE_AT_COMMIT: end },
  });
  try {
    const asked = send(config);
    if (end.startsWith('cut')) assert.equal((await asked).status, 503);
    else {
      await assert.rejects(asked, /fetch failed/);
      assert.equal(await api.exited, 'signal SIGKILL');
    }
  } finally {
    await kill(api);
  }
}
