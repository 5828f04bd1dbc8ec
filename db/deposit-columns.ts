import { MOST_PAYMENTS_SHOWN } from '../domain/deposit.ts';
import { DEPOSIT_COLUMNS, of } from './columns.ts';

/**
 * The columns of a DepositRow but for its payments.
 * @param alias of table `deposit` in the statement
 */
export const depositColumns = (alias: string): string => of(alias, DEPOSIT_COLUMNS).join(', ');

/**
 * SQL of the payments of a deposit as JSON, in the chain's order: PaymentRow[], `[]` where there are none.
 * @param alias of table `deposit` in the statement
 * @param which of them, by a condition on table `p`; left out: all
 */
export const paymentsOf = (alias: string, { which = 'true', limit = MOST_PAYMENTS_SHOWN } = {}): string =>
  // Its value as text: a number in JSON would be rounded.
  `coalesce((SELECT json_agg(p) FROM (
    SELECT p.tx_hash, p.log_index, p.value_micro_usdt::text AS value_micro_usdt, p.block_number, p.block_time, p.denied_by,
      p.status, p.review_reason
    FROM deposit_payment p WHERE p.deposit_id = ${alias}.id AND ${which}
    ORDER BY p.block_number, p.transaction_index, p.log_index LIMIT ${limit}) p), '[]')`;
