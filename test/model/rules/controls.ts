/** docs/partners/spending-controls.md. */
export interface Controls {
  allowed_categories: string[] | null;
  blocked_categories: string[] | null;
  allowed_merchant_countries: string[] | null;
  blocked_merchant_countries: string[] | null;
  spending_limits: Limit[] | null;
}

export interface Limit {
  amount: number;
  interval: Interval;
  categories: string[] | null;
}

export type Interval = 'per_authorization' | 'daily' | 'weekly' | 'monthly' | 'yearly' | 'all_time';

export interface Merchant {
  name: string | null;
  category_code: string | null;
  city: string | null;
  country: string | null;
}
