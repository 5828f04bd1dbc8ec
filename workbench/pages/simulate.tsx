import { useState } from 'react';
import type { Card } from '../../client/generated/types.gen.ts';
import { formatCode, formatMoney } from '../format.ts';
import { useAction, useOne } from '../reading.ts';
import { FieldRow, FormDialog, MoneyField, SelectField, TextField } from '../ui/form.tsx';
import { useWorkbench } from '../workbench.ts';

const KINDS = [
  ['authorize', 'Authorization: a merchant asks for money'],
  ['purchase', 'Purchase: authorized and taken at once'],
  ['force_capture', 'Clearing without an authorization'],
  ['refund', 'Refund'],
  ['decline', 'Decline'],
] as const;

interface Simulation {
  kind: (typeof KINDS)[number][0];
  cardId: string;
  amount: number;
  merchant: Record<string, string>;
}

/** What a merchant does with a test card. Without `card`, one of the newest active ones is chosen. */
export function SimulateDialog({ card, onClose }: { card?: Card; onClose: () => void }) {
  const { api, say } = useWorkbench();
  const [kind, setKind] = useState<Simulation['kind']>('authorize');
  const cards = useOne(
    ['cards', 'to simulate'],
    (options) => api.cards.list({ status: 'active', limit: 100 }, options),
    {
      isAllowed: card === undefined,
    },
  );
  const simulate = useAction(
    async ({ kind, cardId, amount, merchant }: Simulation, options) => {
      const body = { amount, ...merchant };
      if (kind === 'authorize') {
        const { status, decline_reason } = await api.testHelpers.createAuthorization(cardId, body, options);
        return decline_reason === null
          ? `${formatMoney(amount)} authorized.`
          : `It is ${status}: ${formatCode(decline_reason).toLowerCase()}.`;
      }
      const transaction =
        kind === 'force_capture'
          ? await api.testHelpers.forceCapture(cardId, body, options)
          : await api.testHelpers.simulateTransaction(cardId, { type: kind, ...body }, options);
      return transaction.decline_reason === null
        ? `${formatCode(transaction.type)} of ${formatMoney(amount)}.`
        : `It is declined: ${formatCode(transaction.decline_reason).toLowerCase()}.`;
    },
    (message) => {
      say(message);
      onClose();
    },
  );
  return (
    <FormDialog
      title="Simulate a merchant"
      action={simulate}
      submit="Simulate"
      onClose={onClose}
      toInput={(typed) => ({
        kind,
        cardId: card?.id ?? typed.text('card_id') ?? '',
        amount: typed.money('amount') ?? 0,
        merchant: Object.fromEntries(
          ['merchant_name', 'merchant_category_code', 'merchant_country'].flatMap((name) => {
            const text = typed.text(name);
            return text === undefined ? [] : [[name, text]];
          }),
        ),
      })}
    >
      {card === undefined && (
        <SelectField
          name="card_id"
          label="Card"
          options={(cards.data?.data ?? []).map(({ id, last4, external_ref }) => [
            id,
            `•••• ${last4} ${external_ref}`,
          ])}
          hint={cards.data?.data.length === 0 ? 'No card is active. Issue one first.' : undefined}
        />
      )}
      <SelectField
        name="kind"
        label="What happens"
        options={KINDS}
        value={kind}
        onChange={({ target }) => setKind(target.value as Simulation['kind'])}
      />
      <MoneyField name="amount" label="Amount in dollars" defaultValue="12.00" />
      <TextField name="merchant_name" label="Merchant" hint="Optional." />
      <FieldRow>
        <TextField
          name="merchant_category_code"
          label="Category"
          inputMode="numeric"
          hint="Optional: four digits."
        />
        <TextField name="merchant_country" label="Country" hint="Optional: two capital letters." />
      </FieldRow>
    </FormDialog>
  );
}
