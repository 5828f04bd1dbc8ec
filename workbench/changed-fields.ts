/**
 * What a form changes: the fields that differ from those it was opened with, where null is as good as none;
 * null if no field differs. What is not sent stays as it is, whoever has changed it meanwhile.
 * @param after a request all of whose fields can be left out
 */
export function changedFields<T extends object>(before: { [name in keyof T]?: unknown }, after: T): T | null {
  const was = new Map<string, unknown>(Object.entries(before));
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(value ?? null) !== JSON.stringify(was.get(name) ?? null),
  );
  return changed.length === 0 ? null : (Object.fromEntries(changed) as T);
}
