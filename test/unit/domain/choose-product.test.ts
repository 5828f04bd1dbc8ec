import assert from 'node:assert/strict';
import { ApiError } from '../../../domain/api-error.ts';
import { chooseProduct } from '../../../domain/card.ts';

describe('chooseProduct', () => {
  const products = [{ code: 'A' }, { code: 'B' }];
  const code = (expected: string) => (error: unknown) => error instanceof ApiError && error.code === expected;

  it('returns the current product, which comes first, or the one that is asked for', () => {
    assert.equal(chooseProduct(products, undefined).code, 'A');
    assert.equal(chooseProduct(products, 'A').code, 'A');
    assert.equal(chooseProduct(products, 'B').code, 'B');
  });

  it('refuses a product that is not among them, and says so if there is none at all', () => {
    assert.throws(() => chooseProduct(products, 'C'), code('product_not_allowed'));
    assert.throws(() => chooseProduct([], undefined), code('no_product_configured'));
    assert.throws(() => chooseProduct([], 'A'), code('no_product_configured'));
  });
});
