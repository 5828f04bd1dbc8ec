import { Scope, sessionScopes } from '../accounts/scope-rules.ts';
import type { DemoPartner } from './demo-partner.ts';

/** How long the session of a local link lasts. */
const EXPIRES_IN_SECONDS = 43_200;

/** Makes links that open the demo partner's workbench, one a mode. @param apiUrl ends in /v1 */
export async function makeWorkbenchLinks(
  apiUrl: string,
  { testKey, liveKey }: Pick<DemoPartner, 'testKey' | 'liveKey'>,
): Promise<{ test: string; live: string }> {
  const [test, live] = await Promise.all([makeLink(apiUrl, testKey), makeLink(apiUrl, liveKey)]);
  return { test, live };
}

async function makeLink(apiUrl: string, key: string): Promise<string> {
  const response = await fetch(`${apiUrl}/workbench-sessions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ scopes: sessionScopes(Scope.options), expires_in_seconds: EXPIRES_IN_SECONDS }),
    signal: AbortSignal.timeout(10_000),
  });
  const answer = (await response.json()) as { url?: string; error?: { message: string } };
  if (answer.url === undefined) throw new Error(`No link to the workbench: ${answer.error?.message}`);
  return answer.url;
}
