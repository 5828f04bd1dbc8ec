import { z } from 'zod';

/** A column of a report: a field of the resource, under its own name. */
export interface ReportColumn {
  name: string;
  read(resource: object): string | number | null;
}

/**
 * The columns of a resource in a report: its scalar fields in their order, those of nested objects as `merchant_name`, and `fees`
 * as their sum. Other lists are left out.
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
