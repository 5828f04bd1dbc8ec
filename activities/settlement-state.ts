/** `settled`: over and, where nobody had answered yet, answered. `accepted`: the network works on it, answered 202. */
export type SettlementState = 'settled' | 'accepted';
