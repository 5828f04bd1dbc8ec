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
