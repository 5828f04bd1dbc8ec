const COLUMNS = [
  ...['id', 'partner_id', 'mode', 'card_id', 'status', 'failure_code', 'amount_cents', 'fees'],
  ...['card_balance_cents', 'overdue_since', 'created_at', 'completed_at'],
];

/**
 * The columns of a TopUpRow, never `*`, for the reason that card-columns.ts gives.
 * @param alias of table `topup` in the statement
 */
export const topUpColumns = (alias: string): string =>
  COLUMNS.map((column) => `${alias}.${column}`).join(', ');
