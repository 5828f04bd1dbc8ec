import type { Balance } from '../ledger/posting.ts';

/** A verb's output. */
export interface Output {
  /** A resource or an array of resources: all that `--json` prints. */
  value: object;
  /** The fields that the table of a list shows. */
  columns?: readonly string[];
  /**
   * The fields that a list shows below each row, a line each, if they have a value: what is too long for a
   * column.
   */
  below?: readonly string[];
  /** Printed below the text: what to do next, or why a list is empty. */
  note?: string | undefined;
  /** Ends the command with exit code 1, even though it has output. */
  failed?: boolean;
}

// Except the joiners of Persian and Hindi, which do not affect the text around them.
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * Escapes, as JSON does, characters that move a terminal's cursor, change its colours or reverse the
 * direction of text, so that no partner's text can make a line say something else. JSON keeps its meaning.
 */
export function visible(line: string): string {
  return line.replace(UNSEEN, (unseen) =>
    Array.from(
      { length: unseen.length },
      (_, i) => `\\u${unseen.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

/** One JSON value on one line, for programs. */
export const renderJson = ({ value }: Output): string => `${visible(JSON.stringify(value))}\n`;

/** For people: a table for a list, otherwise one field a line. */
export function renderText({ value, columns, below, note }: Output): string {
  const lines = Array.isArray(value) ? renderTable(value, columns ?? [], below) : renderFields(value);
  if (note !== undefined) lines.push(note);
  return lines.map((line) => `${line}\n`).join('');
}

type Item = Record<string, unknown>;

function renderTable(
  items: readonly Item[],
  columns: readonly string[],
  below: readonly string[] = [],
): string[] {
  if (items.length === 0) return [];
  const rows = [
    columns.map((column) => column.toUpperCase()),
    ...items.map((item) => columns.map((column) => toText(fieldOf(item, column)))),
  ];
  const fitting = countFitting(rows);
  const [head = '', ...lines] = align(rows.map((row) => row.slice(0, fitting)));
  const rest = (item: Item) =>
    columns.slice(fitting).flatMap((name) => {
      const value = fieldOf(item, name);
      return value == null ? [] : [`${name}: ${toText(value)}`];
    });
  const linesBelow = (item: Item) => [
    ...linesOf(rest(item)).map((line) => `    ${line}`),
    ...below.flatMap((name) => (item[name] == null ? [] : [`    ${toText(item[name])}`])),
  ];
  return [head, ...items.flatMap((item, index) => [lines[index] ?? '', ...linesBelow(item)])];
}

/** @param name with dots for a field of a field: `merchant.name` */
const fieldOf = (item: Item, name: string): unknown =>
  name.split('.').reduce<unknown>((value, part) => (value as Item | null | undefined)?.[part], item);

/**
 * A table is no wider than 120 columns, with the indent that some have. What doesn't fit beside a row is
 * below it.
 */
const MAX_WIDTH = 118;

/** As many of these on each line as fit. */
function linesOf(parts: readonly string[]): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const longer = `${lines.at(-1)}  ${part}`;
    if (lines.length > 0 && longer.length <= MAX_WIDTH - 4) lines[lines.length - 1] = longer;
    else lines.push(part);
  }
  return lines;
}

/** How many of the first columns fit beside each other; at least one. */
function countFitting(rows: readonly (readonly string[])[]): number {
  let width = 0;
  const firstTooFar = widthsOf(rows).findIndex((cell, index) => {
    width += cell + (index === 0 ? 0 : 2);
    return index > 0 && width > MAX_WIDTH;
  });
  return firstTooFar < 0 ? (rows[0]?.length ?? 0) : firstTooFar;
}

/** One field a line. A list of objects becomes a table below the other fields. */
function renderFields(value: object): string[] {
  const fields = flatten(value, '');
  const isTable = (field: unknown): field is Item[] =>
    Array.isArray(field) && field.length > 0 && field.every((one) => typeof one === 'object' && one !== null);
  const plain = fields.filter(([, field]) => !isTable(field));
  const tables = fields.flatMap(([name, field]) =>
    isTable(field) ? [`${name}:`, ...toTable(field).map((line) => `  ${line}`)] : [],
  );
  return [...align(plain.map(([name, field]) => [name, toText(field)])), ...tables];
}

const toTable = (items: Item[]): string[] => renderTable(items, Object.keys(items[0] ?? {}));

function flatten(value: object, prefix: string): [string, unknown][] {
  return Object.entries(value).flatMap(([name, field]): [string, unknown][] => {
    const isNested = typeof field === 'object' && field !== null && !Array.isArray(field);
    return isNested ? flatten(field, `${prefix}${name}.`) : [[prefix + name, field]];
  });
}

function toText(value: unknown): string {
  if (value === null || value === undefined) return '-';
  return visible(typeof value === 'object' ? JSON.stringify(value) : String(value));
}

function align(rows: readonly (readonly string[])[]): string[] {
  const widths = widthsOf(rows);
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

const widthsOf = (rows: readonly (readonly string[])[]): number[] =>
  rows.reduce<number[]>((widest, row) => row.map((cell, i) => Math.max(cell.length, widest[i] ?? 0)), []);

/** A balance as the command line shows it, in cents. */
export function presentAmounts(balance: Balance): { available: number; held: number; total: number } {
  return { available: balance.availableCents, held: balance.heldCents, total: balance.totalCents };
}
