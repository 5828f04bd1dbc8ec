import type { LedgerCheck } from '../commands/operations/ledger-checks.ts';
import type { Measured } from './measured-gauges.ts';

/** What came of the last check of the ledger. */
export const LEDGER_MEASURED: Measured<LedgerCheck> = {
  name: 'ledger_check',
  source: null,
  gauges: [
    {
      name: 'ledger_check_violations',
      help: 'Violations that the last check of the ledger found, up to 100, by the number of the invariant',
      labels: ['invariant'],
      samples: ({ violations }) => Object.entries(violations).map(([number, count]) => [[number], count]),
    },
    {
      name: 'ledger_check_timestamp_seconds',
      help: 'When the last check of the ledger was completed',
      labels: [],
      samples: ({ completedAt }) => [[[], Date.parse(completedAt) / 1_000]],
    },
    {
      name: 'ledger_check_duration_seconds',
      help: 'How long the last check of the ledger took',
      labels: [],
      samples: ({ durationSeconds }) => [[[], durationSeconds]],
    },
  ],
};
