/** In UTC. */
export interface TimeOfDay {
  hour: number;
  minute: number;
}

/** `03:00`, `23:59`; undefined for anything else. */
export function parseTimeOfDay(text: string): TimeOfDay | undefined {
  const [, hour, minute] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  return hour === undefined ? undefined : { hour: Number(hour), minute: Number(minute) };
}

/**
 * The next such time in UTC that is at least an hour away, so that a check shortly before it is not repeated.
 */
export function nextTime({ hour, minute }: TimeOfDay, now: Date): Date {
  const next = new Date(now);
  next.setUTCHours(hour, minute, 0, 0);
  while (next.getTime() < now.getTime() + 3_600_000) next.setUTCDate(next.getUTCDate() + 1);
  return next;
}
