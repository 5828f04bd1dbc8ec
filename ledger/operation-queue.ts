import type { EntityManager } from '@mikro-orm/postgresql';
import { applyOperations, type LedgerAnswer } from './apply-operations.ts';
import { type EncodedOperation, encodeOperation } from './encode-operation.ts';
import type { LedgerOperation, LedgerResult } from './operation.ts';

const MOST_AT_ONCE = 100;

export interface OperationQueue {
  /** As applyOperation outside a transaction. */
  apply(operation: LedgerOperation): Promise<LedgerResult>;
}

interface Waiting {
  operation: EncodedOperation;
  resolve(result: LedgerResult): void;
  reject(error: unknown): void;
}

/**
 * For work that is a ledger operation and nothing else. Callers that wait for one prepaid account's row lock slow each
 * other down; here one call at a time is under way for each account, and it takes along all that came in meanwhile
 * (design of the ledger, "Rules").
 * @param em a fork without a transaction.
 */
export function createOperationQueue(em: EntityManager): OperationQueue {
  const lines = new Map<string, Waiting[]>();

  async function serve(account: string, line: Waiting[]): Promise<void> {
    while (line.length > 0) {
      const batch = line.splice(0, MOST_AT_ONCE);
      try {
        const answers = await applyOperations(
          em,
          batch.map((waiting) => waiting.operation),
        );
        batch.forEach((waiting, index) => {
          settle(waiting, answers[index] as LedgerAnswer);
        });
      } catch (error) {
        for (const waiting of batch) waiting.reject(error);
      }
    }
    lines.delete(account);
  }

  return {
    async apply(operation) {
      const encoded = encodeOperation(operation);
      const account = `${operation.mode}/${operation.partnerId}`;
      return new Promise((resolve, reject) => {
        const waiting = { operation: encoded, resolve, reject };
        const line = lines.get(account);
        if (line !== undefined) {
          line.push(waiting);
          return;
        }
        const opened = [waiting];
        lines.set(account, opened);
        void serve(account, opened);
      });
    },
  };
}

function settle(waiting: Waiting, answer: LedgerAnswer): void {
  if (answer instanceof Error) waiting.reject(answer);
  else waiting.resolve(answer);
}
