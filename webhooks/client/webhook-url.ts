import { isAddress, isLoopbackAddress, isPublicAddress } from '../../domain/public-address.ts';

/** What is wrong with a webhook endpoint's URL, and what to do about it. */
export const WEBHOOK_URL_PROBLEMS = {
  url_invalid:
    'must be a complete URL, at most 2,048 characters with what is percent-encoded, without spaces or backslashes',
  url_scheme_not_allowed: 'must begin with https://',
  url_userinfo_not_allowed: 'must not contain a user name or password; put a token in the path instead',
  url_fragment_not_allowed: 'must not contain a fragment (# and everything after it)',
  url_port_not_allowed: 'must use port 443 or a port above 1023',
  url_host_not_allowed:
    'must have a host name on the public internet: one that contains a dot and does not end with one',
  address_not_allowed: 'must resolve to a public address',
} as const;

export type WebhookUrlProblem = keyof typeof WEBHOOK_URL_PROBLEMS;

/** Where a webhook goes. The URL is parsed once, so that what is checked and what is used cannot differ. */
export interface WebhookTarget {
  /** As the URL standard serializes it; this is what to store. */
  href: string;
  origin: string;
  /** Includes the query. */
  path: string;
  secure: boolean;
  port: number;
  /** Without brackets. */
  host: string;
  /** If the host is an address: that address, checked. Null if it is a name and needs a look-up. */
  addresses: readonly string[] | null;
}

const LONGEST = 2_048;
/** Characters that the URL standard silently drops or replaces. */
const SILENTLY_CHANGED = /[\p{Cc}\p{Cs}\p{Z}\\]/u;
/** Letters, digits, hyphens and underscores, in two labels or more. Names in other scripts arrive as xn--. */
const PUBLIC_NAME = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+$/;

/**
 * The rules for a webhook endpoint's URL that need no look-up (docs/partners/verifying-webhooks.md;
 * docs/decisions/outbound-safety.md). Apply it when an endpoint is registered and again at each attempt.
 * @param allowLoopbackHttp also allows http to 127.0.0.0/8, ::1 and localhost, for local work
 */
export function parseWebhookUrl(
  text: string,
  { allowLoopbackHttp }: { allowLoopbackHttp: boolean },
): WebhookTarget | { problem: WebhookUrlProblem } {
  const problem = (code: WebhookUrlProblem) => ({ problem: code });
  const url = text.length > LONGEST || SILENTLY_CHANGED.test(text) ? null : URL.parse(text);
  // What is stored is the href, in which characters take up to nine times as many.
  if (url === null || url.href.length > LONGEST) return problem('url_invalid');
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return problem('url_scheme_not_allowed');
  // The standard also accepts https:host and https:///host.
  const [, authority] = /^https?:\/\/([^/?#]+)/i.exec(text) ?? [];
  if (authority === undefined) return problem('url_invalid');
  if (authority.includes('@')) return problem('url_userinfo_not_allowed');
  if (text.includes('#')) return problem('url_fragment_not_allowed');

  const secure = url.protocol === 'https:';
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const target = { href: url.href, origin: url.origin, path: url.pathname + url.search, secure, port, host };
  const isName = !isAddress(host);
  const loopback = host === 'localhost' ? ['127.0.0.1', '::1'] : isLoopbackAddress(host) ? [host] : null;

  if (!secure && !(allowLoopbackHttp && loopback !== null)) return problem('url_scheme_not_allowed');
  if (port !== 443 && port <= 1_023) return problem('url_port_not_allowed');
  if (!secure) return { ...target, addresses: loopback };
  if (!isName)
    return isPublicAddress(host) ? { ...target, addresses: [host] } : problem('address_not_allowed');
  const local = host.endsWith('.localhost');
  if (!PUBLIC_NAME.test(host) || local) return problem('url_host_not_allowed');
  return { ...target, addresses: null };
}
