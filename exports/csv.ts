import { stringify } from 'csv-stringify/sync';
import { z } from 'zod';

/** The body of a report. */
export const Csv = z
  .string()
  .meta({ id: 'Csv', description: 'CSV (RFC 4180): a header line, then a line for each item.' });

/**
 * Lines of a report, each with its CRLF. A text that a spreadsheet would run as a formula begins with `'`.
 */
export function csvLines(columns: readonly ReportColumn[], resources: readonly object[]): string {
  return toLines(resources.map((resource) => columns.map((column) => column.read(resource))));
}

/** The first line of a report. */
export const csvHeader = (columns: readonly ReportColumn[]): string =>
  toLines([columns.map(({ name }) => name)]);

// A lone CR or LF in a cell has to be quoted, too, which it isn't by default if the lines end with both.
const toLines = (rows: (string | number | null)[][]): string =>
  stringify(rows, { record_delimiter: 'windows', quote_record_delimiter: true, escape_formulas: true });

/** A column of a report: a field of the resource, under its own name. */
export interface ReportColumn {
  name: string;
  read(resource: object): string | number | null;
}

/**
 * The columns of a resource in a report: its scalar fields in their order, those of nested objects as
 * `merchant_name`, and `fees` as their sum. Other lists are left out.
 */
export function reportColumns(resource: z.ZodObject): ReportColumn[] {
  return Object.entries(resource.shape).flatMap(([name, declared]): ReportColumn[] => {
    const schema = declared instanceof z.ZodNullable ? declared.unwrap() : declared;
    if (schema instanceof z.ZodObject) {
      return reportColumns(schema).map((column) => ({
        name: `${name}_${column.name}`,
        read: (whole) => {
          const nested = fieldOf(whole, name);
          return nested === null ? null : column.read(nested as object);
        },
      }));
    }
    if (!(schema instanceof z.ZodArray)) return [{ name, read: (whole) => toCell(fieldOf(whole, name)) }];
    return name === 'fees' ? [{ name, read: sumOfFees }] : [];
  });
}

const fieldOf = (resource: object, name: string): unknown =>
  (resource as Record<string, unknown>)[name] ?? null;

function toCell(value: unknown): string | number | null {
  return typeof value === 'string' || typeof value === 'number' || value === null ? value : String(value);
}

function sumOfFees(resource: object): number {
  const { fees } = resource as { fees: { amount: number }[] };
  return fees.reduce((sum, { amount }) => sum + amount, 0);
}
