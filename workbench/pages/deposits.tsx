import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { generate } from 'lean-qr';
import { useEffect, useRef, useState } from 'react';
import type {
  Deposit as DepositObject,
  DepositStatus,
  TestPayment,
} from '../../client/generated/types.gen.ts';
import { formatMoney } from '../format.ts';
import { useAction, useList, useOne } from '../reading.ts';
import { FormDialog, MoneyField, SelectField } from '../ui/form.tsx';
import {
  Button,
  Empty,
  Facts,
  Figures,
  Id,
  Loaded,
  Money,
  Note,
  PageHead,
  Panel,
  Stack,
  Status,
  Time,
} from '../ui/parts.tsx';
import { FilterBar, ListTable, Table, TIMES, useFilters } from '../ui/table.tsx';
import { useWorkbench } from '../workbench.ts';
import css from './deposits.module.css';

/** What each status waits for. */
const WAITS: Record<DepositStatus, string> = {
  awaiting_payment: 'It waits for the payment.',
  confirming: 'A payment is in a block that is not final yet. That takes about a minute.',
  confirmed: 'Your balance was credited.',
  expired: 'Nothing arrived in time. Do not pay to this address any more.',
  needs_review: 'What arrived does not fit. One of us looks at it.',
  returned: 'What arrived is returned, and nothing is credited.',
};

export function Deposits() {
  const { session, api, can } = useWorkbench();
  const filters = useFilters();
  const [isAsking, setAsking] = useState(false);
  const isTest = session.mode === 'test';
  const list = useList(['deposits', filters], (query, options) =>
    api.deposits.list({ ...query, ...filters }, options),
  );
  const ask = can(isTest ? 'test:write' : 'funding:write') ? (
    <Button kind="primary" data-new onClick={() => setAsking(true)}>
      {isTest ? 'Make a test deposit' : 'Ask for an address'}
    </Button>
  ) : null;
  return (
    <>
      <PageHead title="Deposits">{ask}</PageHead>
      <FilterBar filters={TIMES} />
      <ListTable
        label="Deposits"
        list={list}
        empty={
          <Empty title="No deposits yet" action={ask}>
            {isTest
              ? 'A test deposit is paid by itself, as you choose.'
              : 'USDT on TRON funds your live balance.'}
          </Empty>
        }
        columns={[
          {
            head: 'Amount',
            cell: ({ id, amount }) => (
              <Link to="/deposits/$depositId" params={{ depositId: id }}>
                <Money cents={amount} />
              </Link>
            ),
          },
          { head: 'Status', cell: ({ status }) => <Status of={status} /> },
          {
            head: 'Received',
            isNumber: true,
            cell: ({ received_amount }) => <Money cents={received_amount} />,
          },
          {
            head: 'Credited',
            isNumber: true,
            isWide: true,
            cell: ({ credited_amount }) => <Money cents={credited_amount} />,
          },
          { head: 'Address', isWide: true, cell: ({ address }) => <code>{address}</code> },
          { head: 'Created', isWide: true, cell: ({ created }) => <Time at={created} /> },
        ]}
      />
      {isAsking && <AskDialog onClose={() => setAsking(false)} />}
    </>
  );
}

const PAYMENTS: (readonly [TestPayment, string])[] = [
  ['exact', 'The exact amount'],
  ['short', 'Half of it'],
  ['over', 'A dollar more'],
  ['late', 'The exact amount, too late'],
  ['none', 'Nothing'],
];

function AskDialog({ onClose }: { onClose: () => void }) {
  const { session, api } = useWorkbench();
  const navigate = useNavigate();
  const isTest = session.mode === 'test';
  const ask = useAction(
    ({ amount, payment }: { amount: number; payment: TestPayment | undefined }, options) =>
      payment === undefined
        ? api.deposits.create({ amount }, options)
        : api.testHelpers.createDeposit({ amount, payment }, options),
    ({ id }) => void navigate({ to: '/deposits/$depositId', params: { depositId: id } }),
  );
  return (
    <FormDialog
      title={isTest ? 'Make a test deposit' : 'Ask for an address'}
      action={ask}
      submit={isTest ? 'Make' : 'Ask'}
      onClose={onClose}
      toInput={(typed) => ({
        amount: typed.money('amount') ?? 0,
        payment: isTest ? (typed.text('payment') as TestPayment) : undefined,
      })}
    >
      <MoneyField name="amount" label="Amount in dollars" defaultValue="100.00" />
      {isTest && <SelectField name="payment" label="What arrives" options={PAYMENTS} />}
    </FormDialog>
  );
}

export function Deposit() {
  const { depositId } = useParams({ from: '/deposits/$depositId' });
  const { api } = useWorkbench();
  const deposit = useOne(['deposit', depositId], (options) => api.deposits.get(depositId, options));
  return <Loaded reading={deposit}>{(data) => <OneDeposit deposit={data} />}</Loaded>;
}

function OneDeposit({ deposit }: { deposit: DepositObject }) {
  const { session, can } = useWorkbench();
  const [isResolving, setResolving] = useState(false);
  const { id, status, amount, received_amount, credited_amount, address, amount_usdt, payments } = deposit;
  // Otherwise nobody should pay to its address (docs/partners/funding.md).
  const isPayable = status === 'awaiting_payment';
  return (
    <>
      <PageHead above={<Link to="/deposits">Deposits</Link>} title={`Deposit of ${formatMoney(amount)}`}>
        {session.mode === 'test' && can('test:write') && status === 'needs_review' && (
          <Button kind="primary" data-new onClick={() => setResolving(true)}>
            Resolve
          </Button>
        )}
      </PageHead>
      <Stack>
        <Panel title="Money" action={<Status of={status} />}>
          <Figures
            of={[
              ['Asked for', <Money key="a" cents={amount} />],
              ['Received', <Money key="r" cents={received_amount} />],
              ['Credited', <Money key="c" cents={credited_amount} />],
            ]}
          />
          <Note>{WAITS[status]}</Note>
        </Panel>
        <Panel title={isPayable ? 'How to pay' : 'About'}>
          <div className={css.pay}>
            {isPayable && <QrCode text={address} />}
            <Facts
              of={[
                ['Address', <Id key="address" of={address} what="address" />],
                ['Exactly', isPayable ? <Id key="amount" of={amount_usdt} what="amount in USDT" /> : null],
                ['Token', `${deposit.asset} (${deposit.network})`],
                ['Contract', <code key="contract">{deposit.contract_address}</code>],
                ['Before', <Time key="expires" at={deposit.expires_at} />],
                ['Id', <Id key="id" of={id} what="deposit id" />],
              ]}
            />
          </div>
        </Panel>
        <Panel title="What arrived">
          {payments.length === 0 ? (
            <Note>Nothing yet.</Note>
          ) : (
            <Table
              label="Payments"
              rows={payments.map((payment) => ({ ...payment, id: payment.tx_hash }))}
              columns={[
                { head: 'USDT', isNumber: true, cell: (payment) => payment.amount_usdt },
                { head: 'Status', cell: (payment) => <Status of={payment.status} /> },
                {
                  head: 'Block',
                  isNumber: true,
                  isWide: true,
                  cell: ({ block }) => block.toLocaleString('en-US'),
                },
                { head: 'Time', isWide: true, cell: ({ time }) => <Time at={time} /> },
                { head: 'Transaction', isWide: true, cell: ({ tx_hash }) => <code>{tx_hash}</code> },
              ]}
            />
          )}
        </Panel>
      </Stack>
      {isResolving && <ResolveDialog id={id} onClose={() => setResolving(false)} />}
    </>
  );
}

function ResolveDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const { api, say } = useWorkbench();
  const resolve = useAction(
    (body: { outcome: 'credit' | 'returned' }, options) => api.testHelpers.resolveDeposit(id, body, options),
    () => {
      say('The deposit is resolved.');
      onClose();
    },
  );
  return (
    <FormDialog
      title="Resolve the test deposit"
      action={resolve}
      submit="Resolve"
      onClose={onClose}
      toInput={(typed) => ({ outcome: typed.text('outcome') as 'credit' | 'returned' })}
    >
      <SelectField
        name="outcome"
        label="Outcome"
        options={[
          ['credit', 'Credit what arrived'],
          ['returned', 'Return it'],
        ]}
      />
    </FormDialog>
  );
}

/** The address as a wallet's camera reads it. It is black on white in the dark, too. */
function QrCode({ text }: { text: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    if (canvas.current !== null)
      generate(text).toCanvas(canvas.current, { on: [0, 0, 0, 255], off: [255, 255, 255, 255] });
  }, [text]);
  return <canvas ref={canvas} role="img" aria-label={`QR code of the address ${text}`} />;
}
