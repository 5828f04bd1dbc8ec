export function column<Name extends string, Value>(
  items: readonly Record<Name, Value>[],
  name: Name,
): Value[] {
  return items.map((item) => item[name]);
}
