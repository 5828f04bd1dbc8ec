const ERROR_LEVEL = 50;

/**
 * What of a child's log a person at the terminal should see: its errors, one line each, and whatever is not a JSON
 * line (a crash). The log file has everything.
 */
export function echoErrors(name: string, report: (line: string) => void): (line: string) => void {
  return (line) => {
    const entry = parse(line);
    if (entry === undefined) report(`${name}: ${line}`);
    else if (Number(entry.level) >= ERROR_LEVEL) report(`${name}: ${describe(entry)}`);
  };
}

interface LogEntry {
  level?: unknown;
  msg?: unknown;
  err?: { message?: unknown };
}

function parse(line: string): LogEntry | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function describe(entry: LogEntry): string {
  const cause = entry.err?.message;
  return cause === undefined || cause === entry.msg ? `${entry.msg}` : `${entry.msg}: ${cause}`;
}
