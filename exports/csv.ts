import { stringify } from 'csv-stringify/sync';
import { z } from 'zod';
import type { ReportColumn } from './report-columns.ts';

/** The body of a report. */
export const Csv = z
  .string()
  .meta({ id: 'Csv', description: 'CSV (RFC 4180): a header line, then a line for each item.' });

/** Lines of a report, each with its CRLF. A text that a spreadsheet would run as a formula begins with `'`. */
export function csvLines(columns: readonly ReportColumn[], resources: readonly object[]): string {
  return toLines(resources.map((resource) => columns.map((column) => column.read(resource))));
}

/** The first line of a report. */
export const csvHeader = (columns: readonly ReportColumn[]): string =>
  toLines([columns.map(({ name }) => name)]);

// A lone CR or LF in a cell has to be quoted, too, which it isn't by default if the lines end with both.
const toLines = (rows: (string | number | null)[][]): string =>
  stringify(rows, { record_delimiter: 'windows', quote_record_delimiter: true, escape_formulas: true });
