import { randomUUID } from 'node:crypto';
import { siblingId } from '../../domain/ids.ts';
import type { Mode } from '../../domain/mode.ts';
import { resolveTopUp, topUpCardWorkflowId } from '../../workflows/messages.ts';
import { fundedPartner } from '../support/workflows/money.ts';
import { readTopUpRow } from '../support/workflows/top-ups.ts';
import { until } from '../support/workflows/until.ts';
import { CARDHOLDER } from './cardholder.ts';
import { claimedBy } from './claimed-by.ts';
import type { Recording } from './recording.ts';

interface TopUp {
  mode?: Mode;
  amountCents?: number;
  afterwards?: 'succeeded' | 'failed' | 'blocked';
  /** Whether somebody has decided before the deadline already, without effect. */
  early?: true;
}

const topUp =
  ({ mode = 'live', amountCents = 5_000, afterwards, early }: TopUp): Recording =>
  async (stack) => {
    const partner = await fundedPartner(stack);
    const post = (path: string, body: object) =>
      partner.call('POST', path, { mode, body, idempotencyKey: randomUUID() });
    const card = await post('/cards', { amount: 10_000, external_ref: randomUUID(), ...CARDHOLDER });
    await post(`/cards/${card.json.id}/topups`, { amount: amountCents });
    const topUpId = siblingId('topup', await claimedBy(stack, partner, 'top_up_card'));
    const workflow = stack.client.workflow.getHandle(topUpCardWorkflowId(topUpId));
    if (early) await workflow.signal(resolveTopUp, { outcome: 'succeeded' });
    if (afterwards === 'blocked') {
      await post(`/cards/${card.json.id}/block`, {});
    } else if (afterwards !== undefined) {
      await until('it is overdue', async () => (await readTopUpRow(stack, topUpId))?.overdue_since);
      await workflow.signal(resolveTopUp, { outcome: afterwards });
    }
    return workflow;
  };

/** Every outcome of topUpCard. */
export const TOP_UPS: Record<string, Recording> = {
  'topup-live-refused': topUp({ amountCents: 999_999 }),
  'topup-live-succeeded': topUp({}),
  'topup-live-declined': topUp({ amountCents: 5_042 }),
  'topup-live-later-succeeded': topUp({ amountCents: 5_041 }),
  'topup-live-later-failed': topUp({ amountCents: 5_043 }),
  'topup-live-answer-lost': topUp({ amountCents: 5_044 }),
  'topup-live-callback-lost': topUp({ amountCents: 5_045 }),
  'topup-live-callback-twice': topUp({ amountCents: 5_046 }),
  'topup-live-network-unavailable-first': topUp({ amountCents: 5_048 }),
  'topup-live-resolved-succeeded': topUp({ amountCents: 5_047, afterwards: 'succeeded' }),
  'topup-live-resolved-failed': topUp({ amountCents: 5_047, afterwards: 'failed' }),
  'topup-live-decided-early': topUp({ amountCents: 5_047, early: true, afterwards: 'failed' }),
  'topup-live-blocked': topUp({ amountCents: 5_047, afterwards: 'blocked' }),
};
