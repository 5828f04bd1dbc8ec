import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { formatCode } from '../format.ts';
import { useList } from '../reading.ts';
import { Button, Empty, Money, PageHead, Status, Tabs, Time } from '../ui/parts.tsx';
import { FilterBar, ListTable, TIMES, useFilters } from '../ui/table.tsx';
import { useWorkbench } from '../workbench.ts';
import { SimulateDialog } from './simulate.tsx';

const STATUSES = ['pending', 'declined', 'closed', 'reversed', 'expired'] as const;
const TYPES = ['purchase', 'decline', 'refund'] as const;

export function Authorizations() {
  const { api } = useWorkbench();
  const filters = useFilters();
  const list = useList(['authorizations', filters], (query, options) =>
    api.authorizations.listAll({ ...query, ...filters }, options),
  );
  return (
    <Payments>
      <FilterBar
        filters={[
          { name: 'status', label: 'Status', options: STATUSES },
          { name: 'card_id', label: 'Card id' },
          ...TIMES,
        ]}
      />
      <ListTable
        label="Authorizations"
        list={list}
        empty={<NoPayments />}
        columns={[
          {
            head: 'Merchant',
            cell: ({ id, merchant }) => (
              <Link to="/payments/$authorizationId" params={{ authorizationId: id }}>
                {merchant.name ?? 'Unknown merchant'}
              </Link>
            ),
          },
          { head: 'Status', cell: ({ status }) => <Status of={status} /> },
          {
            head: 'Why declined',
            isWide: true,
            cell: ({ decline_reason }) => decline_reason && formatCode(decline_reason),
          },
          { head: 'Amount', isNumber: true, cell: ({ amount }) => <Money cents={amount} /> },
          {
            head: 'Held',
            isNumber: true,
            isWide: true,
            cell: ({ held_amount }) => <Money cents={held_amount} />,
          },
          {
            head: 'Cleared',
            isNumber: true,
            isWide: true,
            cell: ({ settled_amount }) => <Money cents={settled_amount} />,
          },
          { head: 'Card', isWide: true, cell: ({ card_id }) => <CardLink id={card_id} /> },
          { head: 'Created', isWide: true, cell: ({ created }) => <Time at={created} /> },
        ]}
      />
    </Payments>
  );
}

export function Transactions() {
  const { api } = useWorkbench();
  const filters = useFilters();
  const list = useList(['transactions', filters], (query, options) =>
    api.transactions.listAll({ ...query, ...filters }, options),
  );
  return (
    <Payments>
      <FilterBar
        filters={[
          { name: 'type', label: 'Type', options: TYPES },
          { name: 'card_id', label: 'Card id' },
          ...TIMES,
        ]}
      />
      <ListTable
        label="Transactions"
        list={list}
        empty={<NoPayments />}
        columns={[
          {
            head: 'Merchant',
            cell: ({ merchant, authorization_id }) =>
              authorization_id === null ? (
                (merchant.name ?? 'Unknown merchant')
              ) : (
                <Link to="/payments/$authorizationId" params={{ authorizationId: authorization_id }}>
                  {merchant.name ?? 'Unknown merchant'}
                </Link>
              ),
          },
          { head: 'Type', cell: ({ type }) => <Status of={type} /> },
          {
            head: 'Why declined',
            isWide: true,
            cell: ({ decline_reason }) => decline_reason && formatCode(decline_reason),
          },
          { head: 'Amount', isNumber: true, cell: ({ amount }) => <Money cents={amount} /> },
          { head: 'Paid by', isWide: true, cell: ({ charged_to }) => charged_to && formatCode(charged_to) },
          {
            head: 'Fees',
            isNumber: true,
            isWide: true,
            cell: ({ fees }) => <Money cents={fees.reduce((sum, { amount }) => sum + amount, 0)} />,
          },
          { head: 'Card', isWide: true, cell: ({ card_id }) => <CardLink id={card_id} /> },
          { head: 'Created', isWide: true, cell: ({ created }) => <Time at={created} /> },
        ]}
      />
    </Payments>
  );
}

const CardLink = ({ id }: { id: string }) => (
  <Link to="/cards/$cardId" params={{ cardId: id }}>
    <code>…{id.slice(-6)}</code>
  </Link>
);

function Payments({ children }: { children: React.ReactNode }) {
  const { session, can } = useWorkbench();
  const [isSimulating, setSimulating] = useState(false);
  return (
    <>
      <PageHead title="Payments">
        {session.mode === 'test' && can('test:write') && (
          <Button kind="primary" data-new onClick={() => setSimulating(true)}>
            Simulate a merchant
          </Button>
        )}
      </PageHead>
      <Tabs
        label="Payments"
        of={[
          { to: '/payments', label: 'Authorizations' },
          { to: '/payments/transactions', label: 'Transactions' },
        ]}
      />
      {children}
      {isSimulating && <SimulateDialog onClose={() => setSimulating(false)} />}
    </>
  );
}

const NoPayments = () => (
  <Empty title="No payments yet">
    When a merchant asks a card for money, it appears here. In test mode, you are the merchant.
  </Empty>
);
