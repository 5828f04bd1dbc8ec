import { Refusal } from '../idempotency/refusal.ts';

export function unknownProduct(code: string): Refusal {
  return new Refusal(`There is no product ${code}: run "operator product list".`);
}
