import type { Orm } from '../db/orm.ts';
import { ATTENTION_KINDS, type AttentionKind } from '../operator/attention/attention-item.ts';
import { type AttentionConfig, readItems } from '../operator/attention/read-attention.ts';
import type { Measured } from './measured-gauges.ts';

/** The lines of `attention list`, by kind. */
export function attentionMeasured(orm: Orm, config: AttentionConfig): Measured<Waiting[]> {
  return {
    name: 'attention',
    source: {
      everyMs: 30_000,
      async measure() {
        const items = await readItems(orm, config);
        return ATTENTION_KINDS.map((kind) => {
          // The oldest is first.
          const ofKind = items.filter((item) => item.kind === kind);
          return { kind, items: ofKind.length, since: ofKind[0]?.since ?? null };
        });
      },
    },
    gauges: [
      {
        name: 'attention_items',
        help: 'Items that are waiting for a person, as in "attention list", by kind',
        labels: ['kind'],
        samples: (waiting) => waiting.map(({ kind, items }) => [[kind], items]),
      },
      {
        name: 'attention_longest_wait_seconds',
        help: 'How long the oldest of them has waited, by kind',
        labels: ['kind'],
        samples: (waiting) =>
          waiting.map(({ kind, since }) => [
            [kind],
            since === null ? 0 : Math.max(0, Date.now() - Date.parse(since)) / 1_000,
          ]),
      },
    ],
  };
}

interface Waiting {
  kind: AttentionKind;
  items: number;
  since: string | null;
}
