import { z } from 'zod';
import { parseDuration } from './duration.ts';
import { isHttpUrl, isLoopback, PrintableKey } from './values.ts';

const Key = PrintableKey.optional();
/** Shorter ones can be guessed; Standard Webhooks asks for as many. */
const MIN_SECRET_BYTES = 24;
const SharedSecret = PrintableKey.min(
  MIN_SECRET_BYTES,
  `must have at least ${MIN_SECRET_BYTES} characters`,
).optional();
/** Of Standard Webhooks: what follows the prefix is the key's base64. */
const WebhookSecret = z
  .string()
  .regex(/^(whsec_)?(?!whsec_)[A-Za-z0-9+/_-]{4,}={0,2}$/, 'must be whsec_ followed by the base64 of a key')
  .refine(
    (secret) => Buffer.from(secret.replace('whsec_', ''), 'base64').length >= MIN_SECRET_BYTES,
    `must be whsec_ followed by the base64 of at least ${MIN_SECRET_BYTES} bytes`,
  )
  .optional();
const BaseUrl = z.string().refine(isHttpUrl, 'must be an http(s) URL without a user').optional();
const Reference = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, 'must be 1 to 200 printable ASCII characters without spaces')
  .optional();
const RequestsPerSecond = z
  .string()
  .regex(/^[1-9]\d{0,4}$/, 'must be a whole number from 1 to 99999')
  .transform(Number);

/** The variables of live mode's issuers (docs/issuers.md). */
export const NETWORK_VARIABLES = {
  CARD_NETWORK: z.enum(['simulated', 'increase', 'lithic', 'none']).default('none'),
  INCREASE_API_KEY: Key,
  INCREASE_WEBHOOK_SECRET: SharedSecret,
  INCREASE_BASE_URL: BaseUrl,
  INCREASE_FUNDING_ACCOUNT_ID: Reference,
  INCREASE_PROGRAM_ID: Reference,
  INCREASE_ENTITY_ID: Reference,
  INCREASE_REAL_TIME_DECISIONS: z.enum(['true', 'false'], 'must be true or false').default('true'),
  INCREASE_REQUESTS_PER_SECOND: RequestsPerSecond.default(50),
  LITHIC_API_KEY: Key,
  LITHIC_WEBHOOK_SECRET: WebhookSecret,
  LITHIC_ASA_SECRET: WebhookSecret,
  LITHIC_BASE_URL: BaseUrl,
  LITHIC_CARD_PROGRAM_TOKEN: Reference,
  LITHIC_REQUESTS_PER_SECOND: RequestsPerSecond.default(5),
};

/** What issuers sign with. Only an API process that takes their requests reads it. */
export const SIGNATURE_SECRETS = {
  INCREASE_WEBHOOK_SECRET: true,
  LITHIC_WEBHOOK_SECRET: true,
  LITHIC_ASA_SECRET: true,
} as const;

type NetworkValues = z.infer<z.ZodObject<typeof NETWORK_VARIABLES>>;

export type IncreaseConfig = NonNullable<ReturnType<typeof increaseConfig>>;
export type LithicConfig = NonNullable<ReturnType<typeof lithicConfig>>;

/** @returns null unless CARD_NETWORK is increase; {@link networkProblems} finds what is missing. */
export function increaseConfig(values: NetworkValues) {
  if (values.CARD_NETWORK !== 'increase') return null;
  return {
    // A secret that the process doesn't read is empty.
    apiKey: values.INCREASE_API_KEY ?? '',
    /** The shared secret of both event subscriptions. */
    webhookSecret: values.INCREASE_WEBHOOK_SECRET ?? '',
    /** Without a slash at the end. */
    baseUrl: withoutSlash(values.INCREASE_BASE_URL ?? 'https://api.increase.com'),
    /** The account that cards are funded from. */
    fundingAccountId: values.INCREASE_FUNDING_ACCOUNT_ID ?? '',
    programId: values.INCREASE_PROGRAM_ID ?? null,
    entityId: values.INCREASE_ENTITY_ID ?? null,
    /** Whether Increase asks us before it approves. */
    asksForDecisions: values.INCREASE_REAL_TIME_DECISIONS === 'true',
    requestsPerSecond: values.INCREASE_REQUESTS_PER_SECOND,
  };
}

/** @returns null unless CARD_NETWORK is lithic */
export function lithicConfig(values: NetworkValues) {
  if (values.CARD_NETWORK !== 'lithic') return null;
  return {
    // A secret that the process doesn't read is empty.
    apiKey: values.LITHIC_API_KEY ?? '',
    webhookSecret: values.LITHIC_WEBHOOK_SECRET ?? '',
    /** Auth Stream Access has a secret of its own. */
    asaSecret: values.LITHIC_ASA_SECRET ?? '',
    /** Without a slash at the end. */
    baseUrl: withoutSlash(values.LITHIC_BASE_URL ?? 'https://api.lithic.com'),
    cardProgramToken: values.LITHIC_CARD_PROGRAM_TOKEN ?? null,
    requestsPerSecond: values.LITHIC_REQUESTS_PER_SECOND,
  };
}

const REQUIRED: Record<string, readonly string[]> = {
  increase: ['INCREASE_API_KEY', 'INCREASE_WEBHOOK_SECRET', 'INCREASE_FUNDING_ACCOUNT_ID'],
  lithic: ['LITHIC_API_KEY', 'LITHIC_WEBHOOK_SECRET', 'LITHIC_ASA_SECRET'],
};

/** Lithic forgets a key after 24 hours, and one that it has forgotten makes a second card. */
const MAX_LITHIC_KEY_LIFETIME_MS = 23 * 3_600_000;

/**
 * Finds the issuer's variables that are missing, an address that would get card numbers and keys in clear, and
 * keys that would be sent again after Lithic has forgotten them.
 * @param schema of the variables that the process reads: the others may be missing
 */
export function networkProblems(set: NodeJS.ProcessEnv, schema: object = NETWORK_VARIABLES): string[] {
  const network = set.CARD_NETWORK ?? '';
  const lifetimeMs = parseDuration(set.NETWORK_KEY_LIFETIME ?? '') ?? 0;
  return [
    ...(REQUIRED[network] ?? [])
      .filter((name) => name in schema && !set[name])
      .map((name) => `${name}: is required with CARD_NETWORK=${network}`),
    ...['INCREASE_BASE_URL', 'LITHIC_BASE_URL']
      .filter((name) => isInClear(set[name] ?? ''))
      .map((name) => `${name}: leads to another machine without TLS; use https`),
    ...(network === 'lithic' && lifetimeMs > MAX_LITHIC_KEY_LIFETIME_MS
      ? ['NETWORK_KEY_LIFETIME: must be at most 23h with CARD_NETWORK=lithic, which forgets keys after 24h']
      : []),
  ];
}

function isInClear(url: string): boolean {
  if (!URL.canParse(url) || new URL(url).protocol !== 'http:') return false;
  return !isLoopback(new URL(url).hostname);
}

const withoutSlash = (url: string): string => url.replace(/\/+$/, '');
