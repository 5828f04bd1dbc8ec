import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { SourceMap } from 'node:module';
import { basename, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';

const WORKFLOWS = fileURLToPath(new URL('../../workflows/', import.meta.url));
/** Bundled with them, and replayed as they are. */
const HEADERS = fileURLToPath(new URL('../../platform/temporal/carried-headers.ts', import.meta.url));
const SOURCE_MAP = 'base64,';
/** The operators before a value that an expression chooses. */
const CHOOSES = /^(\?|:|&&|\|\|)/;

/**
 * Runs the bundle's workflows in this thread, and returns which of their code did not run: functions that were not called, and
 * branches of statements that were not taken. A branch of an expression counts only if it awaits something: others choose
 * between two values, which does not change a history.
 * @returns for each, `<file>: <the line on which it begins>`
 */
export async function uncoveredBy(
  { code }: WorkflowBundleWithSourceMap,
  run: () => Promise<void>,
): Promise<string[]> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  await run();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();

  const lineAt = originalLines(code);
  const uncovered = result
    .filter(({ url }) => url.includes('/workflow-bundle-'))
    .flatMap(({ functions }) => functions)
    .flatMap(({ ranges }) => ranges)
    .filter(({ count }) => count === 0)
    .map(({ startOffset, endOffset }) => ({ startOffset, text: code.slice(startOffset, endOffset) }))
    .filter(({ text }) => decides(text.trim()))
    .flatMap(({ startOffset, text }) => lineAt(startOffset + text.search(/\S/)) ?? []);
  return [...new Set(uncovered)].sort();
}

const decides = (text: string): boolean =>
  /\w/.test(text) && (!CHOOSES.test(text) || text.includes('await '));

/** @returns a function from an offset in the bundle to the line below workflows/ it came from; null if there is none */
function originalLines(code: string): (offset: number) => string | null {
  const encoded = code.slice(code.lastIndexOf(SOURCE_MAP) + SOURCE_MAP.length);
  const map = new SourceMap(JSON.parse(atob(encoded.trim())));
  return (offset) => {
    const before = code.slice(0, offset).split('\n');
    const line = before.length - 1;
    const entry = map.findEntry(line, before.at(-1)?.length ?? 0);
    // Code that the bundler adds has no entry of its own.
    if (!('originalSource' in entry) || entry.generatedLine !== line) return null;
    const { originalSource: file, originalLine } = entry;
    if (!file.startsWith(WORKFLOWS) && file !== HEADERS) return null;
    const source = readFileSync(file, 'utf8').split('\n')[originalLine] ?? '';
    return `${file === HEADERS ? basename(file) : relative(WORKFLOWS, file)}: ${source.trim()}`;
  };
}
