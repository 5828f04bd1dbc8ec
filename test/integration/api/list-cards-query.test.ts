import { expectError } from '../../support/api/answers.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner } from '../../support/stack.ts';

describe('GET /cards', () => {
  let partner: TestPartner;
  before(async () => {
    partner = await (await sharedStack()).createPartner();
  });

  const INVALID: Record<string, string[]> = {
    'limit=0': ['limit'],
    'limit=101': ['limit'],
    'limit=-1': ['limit'],
    'limit=1.0': ['limit'],
    'limit=1e1': ['limit'],
    'limit=': ['limit'],
    'limit=%2010': ['limit'],
    'limit=٣': ['limit'],
    'limit=9007199254740993': ['limit'],
    'limit[]=1': ['limit[]'],
    'status=': ['status'],
    'status=ACTIVE': ['status'],
    'status=active,frozen': ['status'],
    'status=%00': ['status'],
    'external_ref=': ['external_ref'],
    'external_ref=%00': ['external_ref'],
    'external_ref=a%0Ab': ['external_ref'],
    [`external_ref=${'x'.repeat(256)}`]: ['external_ref'],
    'external_ref=%ED%A0%80': ['query'],
    'external_ref=%FF': ['query'],
    'external_ref=%': ['query'],
    'limit=1&limit=1': ['limit'],
    'limit=1&limit=2&status=x&status=y&foo=1&foo=2': ['limit', 'status', 'foo'],
    'page=2&offset=1&ending_before=x': ['page', 'offset', 'ending_before'],
    '__proto__=1&constructor=2&limit=0': ['__proto__', 'constructor', 'limit'],
    '=1': [''],
  };
  for (const [query, paths] of Object.entries(INVALID)) {
    it(`answers 400 for ?${query.slice(0, 60)} and names ${paths.join(', ') || 'it'}`, async () => {
      expectError(await partner.call('GET', `/cards?${query}`), 'validation_failed', paths);
    });
  }
});
