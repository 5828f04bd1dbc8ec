import assert from 'node:assert/strict';
import { runOperator } from '../../../operator/program.ts';
import { readOperatorConfig } from '../../../platform/config/operator.ts';
import type { TestStack } from '../stack.ts';
import { environmentOf } from './operate.ts';

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
  async function operate(...args: string[]) {
    let out = '';
    let err = '';
    const code = await runOperator([...args, '--json'], {
      readConfig: () => readOperatorConfig({ ...environmentOf(stack.config), ...keys }),
      actor: 'tester@here',
      out: (text) => {
        out += text;
      },
      err: (text) => {
        err += text;
      },
      reconcileGraceMs: 10,
    });
    assert.equal(code, 0, err);
    return JSON.parse(out);
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
