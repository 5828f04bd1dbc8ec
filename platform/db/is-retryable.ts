const DEADLOCK_DETECTED = '40P01';
const SERIALIZATION_FAILURE = '40001';
const UNIQUE_VIOLATION = '23505';
const NETWORK_TRANSACTION = 'card_transaction_of_network';

/**
 * Whether the transaction that met this error can be run again from its start, with the same ids: a deadlock,
 * a serialisation failure, or a race for the first use of an account, a transfer or a network's transaction
 * id, which the retry finds decided. It is never a lack of funds. Looks through the errors a library wrapped
 * around PostgreSQL's.
 */
export function isRetryable(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code, schema, constraint } = at as { code?: unknown; schema?: unknown; constraint?: unknown };
    if (code === DEADLOCK_DETECTED || code === SERIALIZATION_FAILURE) return true;
    if (code === UNIQUE_VIOLATION && (schema === 'ledger' || constraint === NETWORK_TRANSACTION)) return true;
  }
  return false;
}

/**
 * SQLSTATE classes that the same statement with the same rows meets again: data, integrity, the schema,
 * raised errors.
 */
const LASTING_CLASSES = ['22', '23', '42', 'P0'];
const LASTING_NAMES = [
  'LedgerConflict',
  'LedgerRejected',
  'TypeError',
  'RangeError',
  'ZodError',
  '$ZodError',
];

/**
 * Whether running the transaction again cannot help until somebody has changed something: a mistake of ours,
 * or a contradiction.
 */
export function isLasting(error: unknown): boolean {
  if (isRetryable(error)) return false;
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as { code?: unknown };
    if (LASTING_NAMES.includes(at.name)) return true;
    if (typeof code === 'string' && code.length === 5 && LASTING_CLASSES.includes(code.slice(0, 2)))
      return true;
  }
  return false;
}

/** Whether the statement waited for a lock for longer than the session's lock_timeout. */
export function isLockTimeout(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ((at as { code?: unknown }).code === LOCK_NOT_AVAILABLE) return true;
  }
  return false;
}

const LOCK_NOT_AVAILABLE = '55P03';

/** Codes of a socket's errors that say that the other end is out of reach, or went away. */
export const UNREACHABLE_CODES: readonly string[] = [
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'ETIMEDOUT', 'EPIPE', 'ENOTFOUND', 'EAI_AGAIN'],
  ...['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN'],
];
