import { useState } from 'react';
import type { BalanceAlert, SetBalanceAlertRequest, Statement } from '../../client/generated/types.gen.ts';
import { changedFields } from '../changed-fields.ts';
import { formatCode, formatMoney } from '../format.ts';
import { useAction, useList, useOne } from '../reading.ts';
import { useAccountTime } from '../test-clock.ts';
import { Dialog, Form, FormDialog, MoneyField, SelectField, TextField } from '../ui/form.tsx';
import {
  Button,
  Empty,
  Facts,
  Figures,
  Loaded,
  Money,
  Note,
  PageHead,
  Panel,
  ResourceLink,
  Stack,
  Tabs,
  Time,
  Two,
} from '../ui/parts.tsx';
import { FilterBar, ListTable, Table, TIMES, useFilters } from '../ui/table.tsx';
import { useWorkbench } from '../workbench.ts';
import { Quote } from './cards.tsx';
import { CreditDialog } from './credit.tsx';

function Balances({ children }: { children: React.ReactNode }) {
  const { session, api, can } = useWorkbench();
  const [dialog, setDialog] = useState<'credit' | 'alert' | 'quote' | null>(null);
  const balance = useOne(['balance'], (options) => api.balance.get(options));
  const alert = useOne(['alert'], (options) => api.balance.getAlert(options), { refreshMs: 60_000 });
  const close = () => setDialog(null);
  return (
    <>
      <PageHead title="Balance">
        <Button onClick={() => setDialog('quote')}>Quote</Button>
        {can('funding:write') && (
          <Button disabled={alert.data === undefined} onClick={() => setDialog('alert')}>
            Set the alert
          </Button>
        )}
        {session.mode === 'test' && can('test:write') && (
          <Button kind="primary" data-new onClick={() => setDialog('credit')}>
            Add test money
          </Button>
        )}
      </PageHead>
      <Stack>
        <Panel title="Now">
          <Loaded reading={balance}>
            {({ available, held, total }) => (
              <Figures
                of={[
                  ['Available', <Money key="a" cents={available} />],
                  ['Held for operations', <Money key="h" cents={held} />],
                  ['Total', <Money key="t" cents={total} />],
                  ['Alert below', alert.data ? alertWords(alert.data) : '—'],
                ]}
              />
            )}
          </Loaded>
        </Panel>
        <div>
          <Tabs
            label="Balance"
            of={[
              { to: '/balance', label: 'Transactions' },
              { to: '/balance/statements', label: 'Statements' },
              { to: '/balance/reports', label: 'Reports' },
            ]}
          />
          {children}
        </div>
      </Stack>
      {dialog === 'credit' && <CreditDialog onClose={close} />}
      {dialog === 'alert' && alert.data && <AlertDialog alert={alert.data} onClose={close} />}
      {dialog === 'quote' && <QuoteDialog onClose={close} />}
    </>
  );
}

const alertWords = ({ threshold }: BalanceAlert): string =>
  threshold === null ? 'Off' : formatMoney(threshold);

export function Balance() {
  const { api } = useWorkbench();
  const filters = useFilters();
  const list = useList(['balance', 'transactions', filters], (query, options) =>
    api.balanceTransactions.list({ ...query, ...filters }, options),
  );
  return (
    <Balances>
      <FilterBar filters={TIMES} />
      <ListTable
        label="Balance transactions"
        list={list}
        empty={<Empty title="Your balance has not changed yet">Deposits, cards and fees appear here.</Empty>}
        columns={[
          { head: 'Type', cell: ({ type }) => formatCode(type) },
          { head: 'Change', isNumber: true, cell: ({ amount }) => <Money cents={amount} change /> },
          {
            head: 'Total after it',
            isNumber: true,
            cell: ({ balance_after }) => <Money cents={balance_after} />,
          },
          { head: 'By', isWide: true, cell: ({ source }) => <ResourceLink of={source} /> },
          { head: 'Created', isWide: true, cell: ({ created }) => <Time at={created} /> },
        ]}
      />
    </Balances>
  );
}

export function Statements() {
  const { api } = useWorkbench();
  const now = useAccountTime();
  const { month = now.slice(0, 7) } = useFilters();
  const statement = useOne(['statement', month], (options) => api.statements.get(month, options), {
    refreshMs: 30_000,
  });
  return (
    <Balances>
      <FilterBar filters={[{ name: 'month', label: 'Month (UTC)', type: 'month', otherwise: month }]} />
      <Loaded reading={statement}>{(data) => <OneStatement statement={data} />}</Loaded>
    </Balances>
  );
}

function OneStatement({
  statement: { lines, cards, opening_balance, closing_balance },
}: {
  statement: Statement;
}) {
  return (
    <Two>
      <Panel title="Balance">
        <Facts of={[['Opening', formatMoney(opening_balance)]]} />
        {lines.length === 0 ? (
          <Note>Nothing changed it in this month.</Note>
        ) : (
          <Table
            label="What changed the balance"
            rows={lines.map((line) => ({ ...line, id: line.type }))}
            columns={[
              { head: 'Type', cell: ({ type }) => formatCode(type) },
              { head: 'Count', isNumber: true, cell: ({ count }) => count.toLocaleString('en-US') },
              { head: 'Amount', isNumber: true, cell: ({ amount }) => <Money cents={amount} change /> },
            ]}
          />
        )}
        <Facts of={[['Closing', formatMoney(closing_balance)]]} />
      </Panel>
      <Panel title="All cards together">
        <Facts
          of={[
            ['Opening', formatMoney(cards.opening_balance)],
            ['Loaded', formatMoney(cards.loaded)],
            ['Spent', formatMoney(cards.spent)],
            ['Refunded', formatMoney(cards.refunded)],
            ['Released', formatMoney(cards.released)],
            ['Closing', formatMoney(cards.closing_balance)],
          ]}
        />
      </Panel>
    </Two>
  );
}

const REPORTS = [
  ['balanceTransactions', 'Balance transactions', 'balance:read'],
  ['cardTransactions', 'Card transactions', 'cards:read'],
  ['authorizations', 'Authorizations', 'cards:read'],
  ['deposits', 'Deposits', 'balance:read'],
] as const;

export function Reports() {
  const { api, can, say } = useWorkbench();
  const now = useAccountTime();
  const offered = REPORTS.filter(([, , scope]) => can(scope));
  const download = useAction(
    async ({ name, from, to }: { name: (typeof REPORTS)[number][0]; from: string; to: string }) => {
      const stream = await api.reports[name]({ from: `${from}T00:00:00Z`, to: `${to}T00:00:00Z` });
      const url = URL.createObjectURL(await new Response(stream).blob());
      const link = Object.assign(document.createElement('a'), {
        href: url,
        download: `${name}-${from}-${to}.csv`,
      });
      link.click();
      URL.revokeObjectURL(url);
    },
    () => say('The report is downloaded.'),
  );
  return (
    <Balances>
      <Panel title="Download a report">
        <Form
          action={download}
          submit="Download CSV"
          toInput={(typed) => ({
            name: typed.text('name') as (typeof REPORTS)[number][0],
            from: typed.text('from') ?? '',
            to: typed.text('to') ?? '',
          })}
        >
          <SelectField name="name" label="Report" options={offered.map(([name, label]) => [name, label])} />
          <TextField
            name="from"
            label="From"
            type="date"
            defaultValue={`${now.slice(0, 7)}-01`}
            hint="The first day, in UTC."
          />
          <TextField
            name="to"
            label="Before"
            type="date"
            defaultValue={new Date(Date.parse(now) + 86_400_000).toISOString().slice(0, 10)}
            hint="The day after the last one, at most 366 days later."
          />
        </Form>
      </Panel>
    </Balances>
  );
}

function AlertDialog({ alert, onClose }: { alert: BalanceAlert; onClose: () => void }) {
  const { api, say } = useWorkbench();
  // As it was when the dialog was opened: what is on the screen is read again while somebody types.
  const [opened] = useState(alert);
  const set = useAction(
    (body: SetBalanceAlertRequest) => api.balance.setAlert(body),
    ({ threshold }) => {
      say(
        threshold === null
          ? 'The alert is off.'
          : `We’ll alert you when your balance falls below ${formatMoney(threshold)}.`,
      );
      onClose();
    },
  );
  return (
    <FormDialog
      title="Balance alert"
      action={set}
      submit="Save"
      onClose={onClose}
      toInput={(typed) =>
        changedFields<SetBalanceAlertRequest>(opened, { threshold: typed.money('threshold') ?? null })
      }
    >
      <MoneyField
        name="threshold"
        label="Alert below, in dollars"
        hint="An event is sent when the available balance falls below it. Empty: off."
        defaultCents={opened.threshold}
      />
    </FormDialog>
  );
}

function QuoteDialog({ onClose }: { onClose: () => void }) {
  const [type, setType] = useState<'card_issue' | 'card_topup'>('card_issue');
  const [cents, setCents] = useState<number | null>(5_000);
  return (
    <Dialog title="What does it cost?" onClose={onClose}>
      <SelectField
        name="type"
        label="For"
        value={type}
        onChange={({ target }) => setType(target.value as typeof type)}
        options={[
          ['card_issue', 'A new card'],
          ['card_topup', 'A top-up'],
        ]}
      />
      <MoneyField name="amount" label="Amount in dollars" defaultValue="50.00" onCents={setCents} />
      <Quote type={type} cents={cents} />
    </Dialog>
  );
}
