import { Refusal } from '../domain/refusal.ts';
import type { OperatorConfig } from '../platform/config/operator.ts';
import { ConfigurationError } from '../platform/config/read-environment.ts';
import { UNREACHABLE_CODES } from '../platform/db/is-retryable.ts';
import { SessionRefused } from '../platform/db/session.ts';
import { describeError } from '../platform/process/describe-error.ts';

/** The flags are incomplete or contradict each other: exit code 2. */
export class WrongUsage extends Error {
  override readonly name = 'WrongUsage';
}

const HINTS: readonly [code: RegExp, hint: string][] = [
  [
    new RegExp(`^(${UNREACHABLE_CODES.join('|')})$|^(08|53|57P0)`),
    'does not respond: check that it is running (npm start) and that DATABASE_URL is right',
  ],
  [
    /^(55P03|25P03|25P04)$/,
    'is busy: another session held a lock for too long. Nothing was done. Run the command again',
  ],
  [
    /CERT|^UNABLE_TO_VERIFY/,
    "has a certificate that can't be verified: add sslrootcert=FILE, the certificate of its authority, to DATABASE_URL, " +
      'and use the host name that the certificate is for (docs/security.md, "Who might attack, and what stops them")',
  ],
  [/^28/, 'rejected this login: correct DATABASE_URL'],
  [/^3D000$/, 'has no such database: correct DATABASE_URL'],
  [/^(42P01|42703|42883|3F000|22023)$/, 'has a different schema version: run npm run migrate first'],
  [/^42501$/, 'denied permission: run npm run migrate as the owner first'],
];

/** Says what happened and what to do next; never a row's values, a password or a key. */
export async function explainError(error: unknown, config: () => OperatorConfig): Promise<string> {
  if (error instanceof WrongUsage) return `error: ${error.message}\n(see --help for usage and examples)`;
  if ([Refusal, ConfigurationError, SessionRefused].some((known) => error instanceof known))
    return (error as Error).message;
  if (await isTemporalError(error)) {
    const address = config().temporal?.connectionOptions.address ?? 'its address';
    return `Temporal does not respond at ${address}: check that it is running (npm start) and that TEMPORAL_ADDRESS is right, then run this again.`;
  }
  const code = databaseCode(error);
  const hint = HINTS.find(([pattern]) => pattern.test(code ?? ''))?.[1];
  if (code !== undefined && hint !== undefined) {
    const { host, pathname } = new URL(config().databaseUrl);
    return `PostgreSQL at ${host}${pathname} ${hint}. (${code})`;
  }
  const { name, summary, stack } = describeError(error);
  return `This should not have happened. The command may have taken effect, so check before you run it again. ${name}: ${summary}\n${stack ?? ''}`;
}

export async function isTemporalError(error: unknown): Promise<boolean> {
  const { isGrpcServiceError, ServiceError } = await import('@temporalio/client');
  return error instanceof ServiceError || isGrpcServiceError(error);
}

function databaseCode(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as { code?: unknown };
    if (typeof code === 'string') return code;
    if (at.message.startsWith('Connection terminated')) return 'ETIMEDOUT';
  }
  return undefined;
}
