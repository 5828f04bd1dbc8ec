const COLUMNS = [
  ...['id', 'partner_id', 'mode', 'card_id', 'network_transaction_id', 'requested_type', 'forced', 'type'],
  ...['amount_cents', 'fees', 'merchant_name', 'merchant_category_code', 'merchant_city', 'merchant_country'],
  ...['decline_reason', 'charged_to', 'card_balance_after_cents', 'created_at'],
];

/**
 * The columns of a TransactionRow, never `*`, as of cards.
 * @param alias of table `card_transaction` in the statement
 */
export const transactionColumns = (alias: string): string =>
  COLUMNS.map((column) => `${alias}.${column}`).join(', ');
