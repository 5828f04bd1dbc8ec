import { Link, useLocation, useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import type { CreateCardRequest } from '../../client/generated/types.gen.ts';
import { formatCode, formatMoney } from '../format.ts';
import { useAction, useList, useOne } from '../reading.ts';
import { FieldRow, FormDialog, MoneyField, SelectField, TextField } from '../ui/form.tsx';
import { Button, Empty, Facts, Money, Note, PageHead, Problem, Status, Time } from '../ui/parts.tsx';
import { FilterBar, ListTable, TIMES, useFilters } from '../ui/table.tsx';
import { useWorkbench } from '../workbench.ts';

export const CARD_STATUSES = ['funding_pending', 'active', 'frozen', 'blocked', 'failed'] as const;

export function Cards() {
  const { api, can } = useWorkbench();
  const filters = useFilters();
  const navigate = useNavigate();
  // Home links to this dialog.
  const isIssuing = useLocation({ select: ({ hash }) => hash === 'issue' });
  const show = (hash: string) => void navigate({ to: '.', search: filters, hash, replace: true });
  const cards = useList(['cards', filters], (query, options) =>
    api.cards.list({ ...query, ...filters }, options),
  );
  const issue = can('cards:write') ? (
    <Button kind="primary" data-new onClick={() => show('issue')}>
      Issue a card
    </Button>
  ) : null;
  return (
    <>
      <PageHead title="Cards">{issue}</PageHead>
      <FilterBar
        filters={[
          { name: 'status', label: 'Status', options: CARD_STATUSES },
          { name: 'external_ref', label: 'Reference' },
          ...TIMES,
        ]}
      />
      <ListTable
        label="Cards"
        list={cards}
        empty={
          <Empty title="No cards yet" action={issue}>
            A card takes what you put on it, and its fees, from your balance.
          </Empty>
        }
        columns={[
          {
            head: 'Card',
            cell: ({ id, last4, card_name }) => (
              <Link to="/cards/$cardId" params={{ cardId: id }}>
                {last4 === null ? '•••• ····' : `•••• ${last4}`}
                {card_name !== null && ` ${card_name}`}
              </Link>
            ),
          },
          { head: 'Status', cell: ({ status }) => <Status of={status} /> },
          { head: 'Reference', isWide: true, cell: ({ external_ref }) => external_ref },
          {
            head: 'Available',
            isNumber: true,
            cell: ({ available_balance }) => <Money cents={available_balance} />,
          },
          { head: 'Balance', isNumber: true, isWide: true, cell: ({ balance }) => <Money cents={balance} /> },
          { head: 'Created', isWide: true, cell: ({ created }) => <Time at={created} /> },
        ]}
      />
      {isIssuing && issue !== null && <IssueDialog onClose={() => show('')} />}
    </>
  );
}

function IssueDialog({ onClose }: { onClose: () => void }) {
  const { api, say } = useWorkbench();
  const navigate = useNavigate();
  const [cents, setCents] = useState<number | null>(5_000);
  const products = useOne(['products'], (options) => api.products.list(options));
  const issue = useAction(
    (body: CreateCardRequest, options) => api.cards.create(body, options),
    ({ id, status }) => {
      say(status === 'active' ? 'The card is active.' : 'The card is being issued.');
      void navigate({ to: '/cards/$cardId', params: { cardId: id } });
    },
  );
  return (
    <FormDialog
      title="Issue a card"
      action={issue}
      submit="Issue"
      onClose={onClose}
      toInput={(typed) => {
        const names = [
          'product_code',
          'card_name',
          'cardholder_first_name',
          'cardholder_last_name',
          'email',
        ] as const;
        const given = names.flatMap((name) => {
          const text = typed.text(name);
          return text === undefined ? [] : [[name, text]];
        });
        return {
          amount: typed.money('amount') ?? 0,
          external_ref: typed.text('external_ref') ?? '',
          ...Object.fromEntries(given),
        };
      }}
    >
      <MoneyField name="amount" label="Amount in dollars" defaultValue="50.00" onCents={setCents} />
      <Quote type="card_issue" cents={cents} />
      <TextField name="external_ref" label="Your reference" hint="Unique for your account and mode." />
      <TextField name="card_name" label="Label" hint="Optional." />
      <FieldRow>
        <TextField name="cardholder_first_name" label="First name" hint="Optional." />
        <TextField name="cardholder_last_name" label="Last name" hint="Optional." />
      </FieldRow>
      <TextField name="email" label="Email" type="email" hint="Optional." />
      <SelectField
        name="product_code"
        label="Product"
        options={[
          ['', 'The current one'],
          ...(products.data?.data ?? []).map(
            ({ product_code, network, bin }) =>
              [product_code, `${formatCode(network)} ${bin}… (${product_code})`] as const,
          ),
        ]}
      />
    </FormDialog>
  );
}

/** What a card or a top-up costs, as it is typed. */
export function Quote({ type, cents }: { type: 'card_issue' | 'card_topup'; cents: number | null }) {
  const { api } = useWorkbench();
  const asked = useSettled(cents);
  const quote = useOne(
    ['quote', type, asked],
    (options) => api.quotes.create({ type, amount: asked ?? 0 }, options),
    {
      isAllowed: asked !== null && asked > 0,
      refreshMs: 60_000,
    },
  );
  if (asked === null || asked <= 0) return null;
  if (quote.error) return <Problem error={quote.error} />;
  if (quote.data === undefined) return <Note>Getting a quote…</Note>;
  const { fees, card_amount, total_debited } = quote.data;
  return (
    <Facts
      of={[
        ['On the card', formatMoney(card_amount)],
        ...fees.map((fee): [string, string] => [
          `Fee: ${formatCode(fee.type).toLowerCase()}`,
          formatMoney(fee.amount),
        ]),
        ['Debited', <strong key="total">{formatMoney(total_debited)}</strong>],
      ]}
    />
  );
}

/** What was typed, once its typing pauses. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), 250);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
