import { formatMoney } from '../format.ts';
import { useAction } from '../reading.ts';
import { FormDialog, MoneyField } from '../ui/form.tsx';
import { useWorkbench } from '../workbench.ts';

/** Adds pretend money to the test balance. */
export function CreditDialog({ onClose }: { onClose: () => void }) {
  const { api, say } = useWorkbench();
  const credit = useAction(
    (body: { amount: number }, options) => api.testHelpers.creditBalance(body, options),
    ({ available }) => {
      say(`Your test balance has ${formatMoney(available)} available.`);
      onClose();
    },
  );
  return (
    <FormDialog
      title="Add test money"
      action={credit}
      submit="Add"
      onClose={onClose}
      toInput={(typed) => ({ amount: typed.money('amount') ?? 0 })}
    >
      <MoneyField
        name="amount"
        label="Amount in dollars"
        hint="At most $100,000 at a time."
        defaultValue="1000.00"
      />
    </FormDialog>
  );
}
