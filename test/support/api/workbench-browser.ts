import type { Answer, TestStack } from '../stack.ts';

/** What a browser does for a workbench: it keeps cookies, and says where its pages are from. */
export interface Browser {
  cookies: Map<string, string>;
  /** A request of the workbench's page to any path of the API's origin. */
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** A request to /v1 in a tab of this session. */
  ask(
    method: string,
    path: string,
    sessionId: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  exchange(token: string, options?: { replace?: boolean }, headers?: Record<string, string>): Promise<Answer>;
}

let opened = 0;

/** A browser with an address of its own, if the stack trusts this machine as a proxy. */
export function openBrowser({ config: { publicUrl } }: Pick<TestStack, 'config'>): Browser {
  const cookies = new Map<string, string>();
  const address = `10.0.${Math.floor(++opened / 250)}.${opened % 250}`;
  const browser: Browser = {
    cookies,
    async send(method, path, body, headers = {}) {
      const own: Record<string, string> = {
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        'sec-fetch-site': 'same-origin',
        'x-forwarded-for': address,
        ...(method !== 'GET' && { origin: publicUrl }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      };
      const sent = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== ''));
      const response = await fetch(`${publicUrl}${path}`, {
        method,
        headers: sent,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      for (const cookie of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
        if (value === '') cookies.delete(name);
        else cookies.set(name, value);
      }
      const text = await response.text();
      const json = text === '' ? undefined : JSON.parse(text);
      return { status: response.status, headers: response.headers, text, json };
    },
    ask: (method, path, sessionId, body, headers) =>
      browser.send(method, `/v1${path}`, body, { 'workbench-session': sessionId, ...headers }),
    exchange: (token, options = {}, headers = {}) =>
      browser.send('POST', '/workbench/session', { token, ...options }, headers),
  };
  return browser;
}
