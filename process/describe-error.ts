/** What may be logged of an error: never its message where a driver wrote it, since that can quote a row's values. */
export interface DescribedError {
  name: string;
  summary: string;
  stack?: string;
}

/** Errors whose message quotes what could not be read. */
const QUOTE_INPUT = ['SyntaxError', 'ZodError', '$ZodError'];

interface DatabaseError {
  code: string;
  table?: string;
  constraint?: string;
}

/** An error without values of rows: a database's error is its SQLSTATE, table and constraint. */
export function describeError(error: unknown): DescribedError {
  if (!(error instanceof Error)) return { name: 'NonError', summary: `a ${typeof error} was thrown` };
  if (isDatabaseError(error)) {
    const where = [error.table, error.constraint].filter((part) => part !== undefined).join('.');
    return { name: error.name, summary: `SQLSTATE ${error.code} ${where}`.trim(), stack: framesOf(error) };
  }
  const summary = QUOTE_INPUT.includes(error.name)
    ? 'a value is not of the expected shape; see the stack'
    : `${error.message}${grpcCodeOf(error.cause)}`;
  return { name: error.name, summary, stack: framesOf(error) };
}

/** Which of gRPC's statuses a call to Temporal got: the client's own message says only which call it was. */
function grpcCodeOf(cause: unknown): string {
  const code = (cause as { code?: unknown } | undefined)?.code;
  return cause instanceof Error && typeof code === 'number' ? ` (gRPC status ${code})` : '';
}

function isDatabaseError(error: Error): error is Error & DatabaseError {
  const code = (error as Partial<DatabaseError>).code;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code);
}

function framesOf(error: Error): string {
  return (error.stack ?? '')
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .join('\n');
}
