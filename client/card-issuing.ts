import { Resources } from './generated/resources.gen.ts';
import { HttpClient } from './http.ts';
import { webhooks } from './webhooks.ts';

export interface CardIssuingOptions {
  /** `sk_test_…` or `sk_live_…`. It determines the mode. White space at its end, as in a file, is ignored. */
  apiKey: string;
  /**
   * The service's address with its version, such as `https://api.example.com/v1`. Only a service on this
   * machine may have http.
   */
  baseUrl: string;
  /** How often to retry a failed attempt. Default: 3. */
  maxRetries?: number;
  /**
   * How long one attempt may take. Default: 30 seconds. The API can take 16 seconds to respond to a live
   * `cards.create`.
   */
  timeoutMs?: number;
}

/** The Virtual Card Issuing Partner API. One instance serves a whole process. */
export class CardIssuing extends Resources {
  /** The mode of the key. */
  readonly mode: 'test' | 'live';
  readonly webhooks: typeof webhooks = webhooks;

  /** @throws {TypeError} `apiKey` or `baseUrl` is malformed */
  constructor({ apiKey, baseUrl, maxRetries = 3, timeoutMs = 30_000 }: CardIssuingOptions) {
    const key = String(apiKey).trimEnd();
    const [, mode] = /^sk_(test|live)_[!-~]+$/.exec(key) ?? [];
    if (mode === undefined) throw new TypeError('apiKey must begin with sk_test_ or sk_live_');
    const credentials = { authorization: `Bearer ${key}` };
    super(new HttpClient({ credentials, baseUrl: checkBaseUrl(baseUrl), maxRetries, timeoutMs }));
    this.mode = mode as 'test' | 'live';
  }
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** @returns it without a slash at its end @throws {TypeError} it is no place for an API key */
function checkBaseUrl(baseUrl: string | undefined): string {
  if (!baseUrl)
    throw new TypeError("baseUrl is missing: it is the API's address, such as https://api.example.com/v1");
  const address = baseUrl.replace(/\/+$/, '');
  if (!URL.canParse(address) || !address.endsWith('/v1'))
    throw new TypeError('baseUrl must be a URL that ends with /v1');
  const { protocol, hostname, username, password, search, hash } = new URL(address);
  if (username !== '' || password !== '')
    throw new TypeError(
      'baseUrl must not have a user name or a password: the API key is all that the API takes',
    );
  if (search !== '' || hash !== '') throw new TypeError('baseUrl must be a URL that ends with /v1');
  if (protocol !== 'https:' && !(protocol === 'http:' && LOOPBACK.test(hostname)))
    throw new TypeError(
      'baseUrl must begin with https://, or anybody on the way could read your API key. http:// is for a service on this machine: localhost, 127.0.0.1 or [::1]',
    );
  return address;
}
