import { MAX_WAITING_BYTES, MAX_WAITING_MESSAGES } from '../commands/settlement/kept-messages.ts';
import type { Orm } from '../db/orm.ts';
import { readTotals } from '../operator/attention/kept-transactions.ts';
import type { Measured } from './measured-gauges.ts';

/** What the network reported and waits to be booked, and how much of the room for it that takes. */
export function networkMessagesMeasured(orm: Orm): Measured<{ messages: number; bytes: number }> {
  return {
    name: 'network_messages',
    source: { everyMs: 15_000, measure: () => readTotals(orm) },
    gauges: [
      {
        name: 'network_messages_waiting',
        help: 'Transactions that the card network reported and that could not be booked yet',
        labels: [],
        samples: ({ messages }) => [[[], messages]],
      },
      {
        name: 'network_messages_room_used_ratio',
        help: 'How much of the room for them is taken, by number or by bytes; at 1, the network is asked to repeat',
        labels: [],
        samples: ({ messages, bytes }) => [
          [[], Math.max(messages / MAX_WAITING_MESSAGES, bytes / MAX_WAITING_BYTES)],
        ],
      },
    ],
  };
}
