/** How the simulated network treats one operation. */
export interface Behaviour {
  outcome: 'succeeded' | 'declined' | 'failed';
  /** 0: at once, in the same response. `null`: never. Until then, responses say "accepted". */
  completesAfterMs: number | null;
  /** One callback for each of these, after this delay from the completion. */
  callbackDelaysMs: readonly number[];
  /** How many requests get 503 before the network accepts the operation. */
  refusals: number;
  /** The network accepts the operation, then cuts the connection instead of responding. */
  losesAnswer: boolean;
}

export const SUCCESS: Behaviour = {
  outcome: 'succeeded',
  completesAfterMs: 0,
  callbackDelaysMs: [],
  refusals: 0,
  losesAnswer: false,
};

export const DECLINED: Behaviour = { ...SUCCESS, outcome: 'declined' };

/** By the last two digits of the amount (docs/partners/testing.md). */
const BY_LAST_DIGITS: Readonly<Record<number, Behaviour>> = {
  41: { ...SUCCESS, completesAfterMs: 2_000, callbackDelaysMs: [0] },
  42: DECLINED,
  43: { ...SUCCESS, outcome: 'failed', completesAfterMs: 2_000, callbackDelaysMs: [0] },
  44: { ...SUCCESS, losesAnswer: true },
  45: { ...SUCCESS, completesAfterMs: 2_000 },
  // The second one is also late: by then, nothing may be waiting for it.
  46: { ...SUCCESS, completesAfterMs: 2_000, callbackDelaysMs: [0, 1_000] },
  47: { ...SUCCESS, completesAfterMs: null },
  48: { ...SUCCESS, refusals: 3 },
};

/** How the network treats an issuance or a transfer of this amount. */
export function behaviourFor(amountCents: number): Behaviour {
  return BY_LAST_DIGITS[amountCents % 100] ?? SUCCESS;
}
