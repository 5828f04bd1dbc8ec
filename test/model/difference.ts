export class Difference extends Error {
  override readonly name = 'Difference';

  constructor(what: string, details: readonly string[] = []) {
    super([what, ...details.map((line) => `  ${line}`)].join('\n'));
  }
}

/** @throws Difference if the two are not the same as JSON */
export function demandSame(
  what: string,
  service: unknown,
  model: unknown,
  details: readonly string[] = [],
): void {
  const [left, right] = [JSON.stringify(service), JSON.stringify(model)];
  if (left !== right) throw new Difference(what, [`service: ${left}`, `model:   ${right}`, ...details]);
}
