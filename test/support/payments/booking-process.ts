import type { PaymentSnapshot } from '../../../domain/payment.ts';
import { bookPayments } from '../../../payments/book-payments.ts';
import { SERVICE_ROLE } from '../../../platform/db/login.ts';
import { openOrm } from '../../../platform/db/orm.ts';
import { transaction } from '../../../platform/db/transaction.ts';

// Books what it is sent, a few payments at once, as one of several workers does.

/** What one payment's snapshots come to, in the order in which this process hears of them. */
export interface HeardPayment {
  cardId: string;
  paymentId: string;
  snapshots: PaymentSnapshot[];
}

const AT_ONCE = 4;
const TTL_MS = 7 * 86_400_000;

const [databaseUrl = ''] = process.argv.slice(2);
const orm = await openOrm({ databaseUrl, poolSize: AT_ONCE, role: SERVICE_ROLE, onOwnerLogin: () => {} });

process.on('message', async (payments: HeardPayment[]) => {
  const left = [...payments];
  const work = async (): Promise<void> => {
    for (let one = left.pop(); one !== undefined; one = left.pop()) {
      const { cardId, paymentId, snapshots } = one;
      for (const snapshot of snapshots)
        await transaction(orm, (tx) =>
          bookPayments(tx, [{ cardId, paymentId, snapshot, readAt: null }], { ttlMs: TTL_MS }),
        );
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  process.send?.('booked');
});
process.on('disconnect', () => void orm.close());
process.send?.('ready');
