import assert from 'node:assert/strict';
import type { TestStack } from '../stack.ts';
import { environmentOf, operateIn } from './operate.ts';

export interface AttentionLine {
  kind: string;
  id: string;
  reason: string;
  command: string;
}

/**
 * The operator's commands of a reconciliation, beside a service with an issuer.
 * @param keys the issuer's variables
 */
export function reconciler(stack: TestStack, keys: NodeJS.ProcessEnv) {
  // No test waits for its turn at a fake.
  const rates = { INCREASE_REQUESTS_PER_SECOND: '1000', LITHIC_REQUESTS_PER_SECOND: '1000' };
  const run = operateIn({ ...environmentOf(stack.config), ...rates, ...keys }, 15_000, undefined, 10);
  async function operate(...args: string[]) {
    const { code, err, json } = await run(...args);
    assert.equal(code, 0, err);
    return json;
  }
  return {
    operate,
    reconcile: (since = '1h') => operate('network', 'reconcile', '--since', since),
    async differences(): Promise<AttentionLine[]> {
      const items: AttentionLine[] = await operate('attention', 'list');
      return items.filter(({ kind }) => kind === 'network_difference');
    },
  };
}
