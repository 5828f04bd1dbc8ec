const PATHS = {
  home: 'M3 7.5 8 3l5 4.5V13H9.5V9.5h-3V13H3z',
  cards: 'M2 4.5h12v7H2zM2 7h12',
  payments: 'M4 6h8l-2-2M12 10H4l2 2',
  balance: 'M8 2v12M11 4.5H6.8a1.8 1.8 0 0 0 0 3.5h2.4a1.8 1.8 0 0 1 0 3.5H5',
  deposits: 'M8 2v8M5 7l3 3 3-3M3 13h10',
  events: 'M8.5 2 4 9h3.5L7 14l5-7H8.5z',
  endpoints: 'M5 11a3 3 0 1 1 3-3h3a2.5 2.5 0 1 1 0 .1',
  keys: 'M9.5 9.5a3.5 3.5 0 1 0-3-3L2 11v3h3v-2h2z',
  requests: 'M3 4h10M3 8h10M3 12h6',
  clock: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 5v3l2 1.5',
  menu: 'M2 4h12M2 8h12M2 12h12',
  close: 'm4 4 8 8m0-8-8 8',
  copy: 'M6 6h7v7H6zM10 3H3v7',
  check: 'm3 8.5 3.5 3.5L13 4.5',
  plus: 'M8 3v10M3 8h10',
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = ({ name }: { name: IconName }) => (
  <svg
    viewBox="0 0 16 16"
    width="16"
    height="16"
    fill="none"
    stroke="currentColor"
    strokeWidth="1.5"
    strokeLinecap="round"
    strokeLinejoin="round"
    aria-hidden="true"
  >
    <path d={PATHS[name]} />
  </svg>
);
