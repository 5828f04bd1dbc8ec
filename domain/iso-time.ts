export function isoTime(at: string | Date): string;
export function isoTime(at: string | Date | null): string | null;
/** A time as the database gives it, in the form that our JSON has. */
export function isoTime(at: string | Date | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
