import assert from 'node:assert/strict';
import {
  type AppliedControls,
  afterSpending,
  completeControls,
  type LimitSpending,
  NO_CONTROLS,
  refusalByControls,
  SpendingControlsRequest,
} from '../../../domain/spending-controls.ts';
import { column } from '../../support/column.ts';

const request = { amountCents: 10, wholeCents: 10, categoryCode: '5812', country: 'AT' };
const limit = (more: Partial<LimitSpending>): LimitSpending => ({
  source: 'card',
  amount: 100,
  interval: 'daily',
  categories: null,
  spentCents: 0,
  endsAt: new Date(),
  ...more,
});
const controlled = (
  controls: readonly SpendingControlsRequest[],
  limits: readonly LimitSpending[] = [],
): AppliedControls => ({
  controls: controls.map(completeControls).filter((control) => control !== null),
  limits,
});

describe('spending controls', () => {
  it('refuse nothing if there are none', () => {
    assert.equal(refusalByControls(NO_CONTROLS, request), null);
  });

  it('refuse by category before country before limits, each of the card and the account before the next', () => {
    const limits = [limit({ amount: 1, source: 'account' })];
    const card = { blocked_merchant_countries: ['AT'] };
    const account = { blocked_categories: ['5812'] };
    assert.equal(
      refusalByControls(controlled([card, account], limits), request),
      'merchant_category_not_allowed',
    );
    assert.equal(refusalByControls(controlled([card], limits), request), 'merchant_country_not_allowed');
    assert.equal(refusalByControls(controlled([{}], limits), request), 'spending_limit_exceeded');
  });

  it('refuse a merchant without a code or a country by a list of what is allowed, not of what is blocked', () => {
    const unknown = { ...request, categoryCode: null, country: null };
    const refusal = (controls: SpendingControlsRequest) => refusalByControls(controlled([controls]), unknown);
    assert.equal(refusal({ allowed_categories: ['5812'] }), 'merchant_category_not_allowed');
    assert.equal(refusal({ allowed_merchant_countries: ['AT'] }), 'merchant_country_not_allowed');
    assert.equal(refusal({ blocked_categories: ['5812'], blocked_merchant_countries: ['AT'] }), null);
  });

  it('allow a limit to be reached exactly, and count refunds only down to nothing', () => {
    const refusal = (spentCents: number) =>
      refusalByControls(controlled([], [limit({ spentCents })]), request);
    assert.equal(refusal(90), null);
    assert.equal(refusal(91), 'spending_limit_exceeded');
    const refunded = afterSpending(controlled([], [limit({ spentCents: 50 })]), -90, null);
    assert.equal(refunded.limits[0]?.spentCents, 0);
    assert.equal(afterSpending(refunded, 10, null).limits[0]?.spentCents, 10);
  });

  it('compare the whole authorization with a limit per authorization', () => {
    const limits = [limit({ interval: 'per_authorization', endsAt: null })];
    const refusal = (wholeCents: number) =>
      refusalByControls(controlled([], limits), { ...request, wholeCents });
    assert.equal(refusal(100), null);
    assert.equal(refusal(101), 'spending_limit_exceeded');
  });

  it('count only merchants of a limit’s categories', () => {
    const limits = [limit({ amount: 1, categories: ['5411'] })];
    assert.equal(refusalByControls(controlled([], limits), request), null);
    assert.equal(refusalByControls(controlled([], limits), { ...request, categoryCode: null }), null);
    assert.equal(
      refusalByControls(controlled([], limits), { ...request, categoryCode: '5411' }),
      'spending_limit_exceeded',
    );
    const after = afterSpending(controlled([], [limit({ categories: ['5812'] }), ...limits]), 7, '5812');
    assert.deepEqual(column(after.limits, 'spentCents'), [7, 0]);
  });

  it('decide a request for nothing by category and country, never by limits', () => {
    const nothing = { ...request, amountCents: 0, wholeCents: 0 };
    assert.equal(refusalByControls(controlled([], [limit({ spentCents: 500 })]), nothing), null);
    assert.equal(
      refusalByControls(controlled([{ blocked_categories: ['5812'] }]), nothing),
      'merchant_category_not_allowed',
    );
  });

  it('without any restriction are none, and are shown with every field', () => {
    assert.equal(completeControls({}), null);
    assert.equal(completeControls({ allowed_categories: null, spending_limits: null }), null);
    assert.deepEqual(completeControls({ spending_limits: [{ interval: 'daily', amount: 5 }] }), {
      allowed_categories: null,
      blocked_categories: null,
      allowed_merchant_countries: null,
      blocked_merchant_countries: null,
      spending_limits: [{ amount: 5, interval: 'daily', categories: null }],
    });
  });

  const codes = (count: number) =>
    Array.from({ length: count }, (_, index) => String(index).padStart(4, '0'));
  const limits = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ amount: index + 1, interval: 'daily' }));

  it('can have 300 codes in a list, and 10 limits', () => {
    for (const controls of [
      { allowed_categories: codes(300) },
      { spending_limits: limits(10) },
      { spending_limits: [{ amount: 1, interval: 'daily', categories: codes(300) }] },
    ]) {
      assert.equal(SpendingControlsRequest.safeParse(controls).success, true);
    }
  });

  const aDay = (amount: number, more: object = {}) => ({ amount, interval: 'daily', ...more });
  const twice = [
    ['5812', '5411'],
    ['5411', '5812'],
  ].map((categories) => aDay(1, { categories }));
  const [AT, DE] = [['AT'], ['DE']];
  /** The paths that are at fault, if they are others than the fields. */
  const REFUSED: [what: string, controls: object, paths?: string[]][] = [
    ['both lists of categories', { allowed_categories: ['5812'], blocked_categories: ['5411'] }],
    ['both lists of countries', { allowed_merchant_countries: AT, blocked_merchant_countries: DE }],
    ['an empty list', { blocked_categories: [] }],
    ['no limits in a list', { spending_limits: [] }],
    ['a code twice', { blocked_categories: ['5812', '5812'] }],
    ['a country twice', { blocked_merchant_countries: ['AT', 'AT'] }],
    ['a code of three digits', { allowed_categories: ['581'] }, ['allowed_categories.0']],
    ['a country in small letters', { allowed_merchant_countries: ['at'] }, ['allowed_merchant_countries.0']],
    [
      'a country that does not exist',
      { allowed_merchant_countries: ['XX'] },
      ['allowed_merchant_countries.0'],
    ],
    ['301 codes', { allowed_categories: codes(301) }],
    ['11 limits', { spending_limits: limits(11) }],
    ['a limit of 0', { spending_limits: [aDay(0)] }, ['spending_limits.0.amount']],
    [
      'an unknown interval',
      { spending_limits: [aDay(1, { interval: 'hourly' })] },
      ['spending_limits.0.interval'],
    ],
    ['the same limit twice', { spending_limits: twice }, ['spending_limits.1']],
    ['a limit without an amount', { spending_limits: [{ interval: 'daily' }] }, ['spending_limits.0.amount']],
  ];
  for (const [what, controls, paths = Object.keys(controls)] of REFUSED) {
    it(`are refused with ${what}`, () => {
      const { error } = SpendingControlsRequest.safeParse(controls);
      assert.deepEqual(
        error?.issues.map(({ path }) => path.join('.')),
        paths,
      );
    });
  }
});
