import { Resources } from '../client/generated/resources.gen.ts';
import type { Mode, WorkbenchScope } from '../client/generated/types.gen.ts';
import { HttpClient } from '../client/http.ts';

/** Whom this tab shows, from when it is opened to when it is closed (docs/partners/workbench.md). */
export interface Session {
  id: string;
  account: { id: string; name: string };
  mode: Mode;
  scopes: WorkbenchScope[];
  expires_at: string;
}

/** What a tab begins with. */
export type Opening =
  | { kind: 'open'; session: Session }
  /** The link is of another account than the one that is open in this browser. */
  | { kind: 'replaces'; open: Session; token: string }
  /** @property problem why the link was not opened; null if there was none */
  | { kind: 'closed'; mode: Mode | null; problem: string | null };

/** What is asked as the session of this tab, which does nothing for another one that the cookie has. */
const asSession = ({ id }: Session, path: string): HttpClient =>
  new HttpClient({
    credentials: { 'workbench-session': id },
    baseUrl: location.origin + path,
    maxRetries: 2,
    timeoutMs: 30_000,
  });

/** Every operation of the API. */
export class Api extends Resources {
  constructor(session: Session) {
    super(asSession(session, '/v1'));
  }
}

const OWN_PATH = '/workbench/session';

/** Opens the link in the address bar, or finds the session that this browser has open in the tab's mode. */
export async function openSession(): Promise<Opening> {
  const token = tokenOfLink(location.href);
  const mode = modeOfPath(location.pathname);
  // Nobody who looks at the address bar or its history should find it.
  if (token !== null) {
    history.replaceState(null, '', location.pathname + location.search);
    return exchange(token, false);
  }
  const modes: Mode[] = mode === null ? ['test', 'live'] : [mode];
  const found = await Promise.all(modes.map(readSession));
  return found.find((one) => one.kind === 'open') ?? found[0] ?? { kind: 'closed', mode, problem: null };
}

/** @param replace whether the session of another account may end for it */
export async function exchange(token: string, replace: boolean): Promise<Opening> {
  const { status, body } = await ask('POST', OWN_PATH, { token, replace });
  if (status === 200) return { kind: 'open', session: body as Session };
  const { workbench_session: open, error } = body as Refusal;
  if (status === 409 && open !== undefined) return { kind: 'replaces', open, token };
  return { kind: 'closed', mode: null, problem: error?.message ?? UNREACHABLE };
}

/** @throws {CardIssuingError} it may still be open */
export async function signOut(session: Session): Promise<void> {
  const { mode } = session;
  await asSession(session, OWN_PATH).send({ method: 'DELETE', url: '', query: { mode } });
}

/** The token of a link that somebody pasted; null if it is none. */
export const tokenOfLink = (text: string): string | null => /#([\w-]{20,})\s*$/.exec(text)?.[1] ?? null;

/** `/workbench/live/cards` is a page of live mode. */
export function modeOfPath(path: string): Mode | null {
  const [, mode] = /^\/workbench\/(test|live)(?:\/|$)/.exec(path) ?? [];
  return (mode as Mode | undefined) ?? null;
}

const UNREACHABLE = 'The API did not answer. Try again in a moment.';

interface Refusal {
  error?: { message: string };
  workbench_session?: Session;
}

async function readSession(mode: Mode): Promise<Opening> {
  const { status, body } = await ask('GET', `${OWN_PATH}?mode=${mode}`);
  if (status === 200) return { kind: 'open', session: body as Session };
  const problem = status === 401 ? null : ((body as Refusal).error?.message ?? UNREACHABLE);
  return { kind: 'closed', mode, problem };
}

async function ask(method: string, path: string, body?: object): Promise<{ status: number; body: unknown }> {
  try {
    const response = await fetch(path, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    return { status: response.status, body: await response.json().catch(() => ({})) };
  } catch {
    return { status: 0, body: {} };
  }
}
