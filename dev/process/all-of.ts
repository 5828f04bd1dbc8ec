/** As Promise.all, but a failure is told when everything has ended: nothing is still being started while the rest is stopped. */
export async function allOf<const T extends readonly unknown[]>(
  works: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(works);
  return Promise.all(works);
}
