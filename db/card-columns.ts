const COLUMNS = [
  ...['id', 'partner_id', 'mode', 'status', 'external_ref', 'card_name', 'cardholder_first_name'],
  ...[
    'cardholder_last_name',
    'email',
    'product_code',
    'network',
    'network_card_id',
    'last4',
    'exp_month',
    'exp_year',
  ],
  ...['failure_code', 'funding_cents', 'fees', 'overdue_since', 'created_at'],
];

/**
 * The columns of a CardRow, never `*`: a prepared statement whose columns a migration changes would fail in every
 * process that runs through it.
 * @param alias of table `card` in the statement
 */
export const cardColumns = (alias: string): string =>
  COLUMNS.map((column) => `${alias}.${column}`).join(', ');
