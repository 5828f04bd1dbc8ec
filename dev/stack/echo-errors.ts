const ERROR_LEVEL = 50;

/** Shows a person at the terminal the errors of a child's JSON log, one line each. The log file has everything. */
export function echoErrors(name: string, report: (line: string) => void): (line: string) => void {
  return (line) => {
    const entry = parse(line);
    if (entry !== undefined && Number(entry.level) >= ERROR_LEVEL) report(`${name}: ${describe(entry)}`);
  };
}

/** Of a child's last lines those that are no log: what Node itself says of a crash. */
export function crashOf(lines: readonly string[]): string[] {
  return lines.filter((line) => parse(line) === undefined && line.trim() !== '');
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
