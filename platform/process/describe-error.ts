/** What may be logged about an error. A driver's message is left out, because it can quote a row's values. */
export interface DescribedError {
  name: string;
  summary: string;
  stack?: string;
}

/** Errors whose message quotes their input. */
const QUOTE_INPUT = ['SyntaxError', 'ZodError', '$ZodError'];

interface DatabaseError {
  code: string;
  table?: string;
  constraint?: string;
}

/** Describes an error without any row's values: a database error by its SQLSTATE, table and constraint. */
export function describeError(error: unknown): DescribedError {
  if (!(error instanceof Error)) return { name: 'NonError', summary: `a ${typeof error} was thrown` };
  if (isDatabaseError(error)) {
    const where = [error.table, error.constraint].filter((part) => part !== undefined).join('.');
    return { name: error.name, summary: `SQLSTATE ${error.code} ${where}`.trim(), stack: stackFrames(error) };
  }
  const summary = QUOTE_INPUT.includes(error.name)
    ? 'a value is not of the expected shape; see the stack'
    : `${error.message}${grpcCode(error.cause)}`;
  return { name: error.name, summary, stack: stackFrames(error) };
}

/** The gRPC status of a failed call to Temporal, because the client's own message only names the call. */
function grpcCode(cause: unknown): string {
  const code = (cause as { code?: unknown } | undefined)?.code;
  return cause instanceof Error && typeof code === 'number' ? ` (gRPC status ${code})` : '';
}

function isDatabaseError(error: Error): error is Error & DatabaseError {
  const code = (error as Partial<DatabaseError>).code;
  // The system's codes begin with an E, which no class of SQLSTATEs does.
  return typeof code === 'string' && /^(?!E)[0-9A-Z]{5}$/.test(code);
}

function stackFrames(error: Error): string {
  return (error.stack ?? '')
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .join('\n');
}
