import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import type { Authorization as AuthorizationObject } from '../../client/generated/types.gen.ts';
import { formatCode, formatMoney } from '../format.ts';
import { useAction, useList, useOne } from '../reading.ts';
import { CheckField, FormDialog, MoneyField } from '../ui/form.tsx';
import {
  Button,
  Facts,
  Figures,
  Id,
  Loaded,
  Money,
  Note,
  PageHead,
  Panel,
  ResourceLink,
  Stack,
  Status,
  Time,
  Two,
} from '../ui/parts.tsx';
import { Table } from '../ui/table.tsx';
import { useWorkbench } from '../workbench.ts';

export function Authorization() {
  const { authorizationId } = useParams({ from: '/payments/$authorizationId' });
  const { api } = useWorkbench();
  const authorization = useOne(['authorization', authorizationId], (options) =>
    api.authorizations.get(authorizationId, options),
  );
  return <Loaded reading={authorization}>{(data) => <OneAuthorization authorization={data} />}</Loaded>;
}

type Step = 'increment' | 'capture' | 'reverse' | 'expire';

function OneAuthorization({ authorization }: { authorization: AuthorizationObject }) {
  const { session, can } = useWorkbench();
  const [step, setStep] = useState<Step | null>(null);
  const { id, card_id, status, merchant, amount, held_amount, settled_amount, decline_reason, requests } =
    authorization;
  const isMerchant = session.mode === 'test' && can('test:write');
  const steps: [Step, string, boolean][] = [
    ['capture', 'Capture', status !== 'declined'],
    ['increment', 'Increment', status === 'pending'],
    ['reverse', 'Reverse', status === 'pending'],
    ['expire', 'Expire', status === 'pending'],
  ];
  return (
    <>
      <PageHead above={<Link to="/payments">Payments</Link>} title={merchant.name ?? 'Unknown merchant'}>
        {isMerchant &&
          steps.map(
            ([name, label, isOffered]) =>
              isOffered && (
                <Button
                  key={name}
                  data-new={name === 'capture' ? '' : undefined}
                  onClick={() => setStep(name)}
                >
                  {label}
                </Button>
              ),
          )}
      </PageHead>
      <Stack>
        <Panel title="Money" action={<Status of={status} />}>
          <Figures
            of={[
              ['Authorized', <Money key="a" cents={amount} />],
              ['Held', <Money key="h" cents={held_amount} />],
              ['Cleared', <Money key="c" cents={settled_amount} />],
            ]}
          />
          {decline_reason !== null && (
            <Note>It was declined: {formatCode(decline_reason).toLowerCase()}.</Note>
          )}
        </Panel>
        <Two>
          <Panel title="About">
            <Facts
              of={[
                ['Id', <Id key="id" of={id} what="authorization id" />],
                ['Card', <ResourceLink key="card" of={{ type: 'card', id: card_id }} />],
                ['Category', merchant.category_code],
                ['Place', [merchant.city, merchant.country].filter(Boolean).join(', ') || null],
                ['Created', <Time key="created" at={authorization.created} />],
                ['Expires', authorization.expires_at && <Time key="expires" at={authorization.expires_at} />],
              ]}
            />
          </Panel>
          <Panel title="Requests of the merchant">
            <Table
              label="Requests"
              rows={requests.map((request, index) => ({ ...request, id: String(index) }))}
              columns={[
                { head: 'Request', cell: ({ type }) => formatCode(type) },
                {
                  head: 'Answer',
                  cell: ({ approved, decline_reason: why }) => (
                    <Status
                      of={approved ? 'approved' : 'declined'}
                      label={why === null ? undefined : formatCode(why)}
                    />
                  ),
                },
                { head: 'Amount', isNumber: true, cell: (request) => <Money cents={request.amount} /> },
                { head: 'Time', isWide: true, cell: ({ created }) => <Time at={created} /> },
              ]}
            />
          </Panel>
        </Two>
        <Clearings authorization={authorization} />
      </Stack>
      {step !== null && (
        <StepDialog step={step} authorization={authorization} onClose={() => setStep(null)} />
      )}
    </>
  );
}

/** What the card's newest transactions have of this authorization. */
function Clearings({ authorization }: { authorization: AuthorizationObject }) {
  const { api } = useWorkbench();
  const transactions = useList(['card', authorization.card_id, 'clearings'], (query, options) =>
    api.transactions.list(authorization.card_id, query, options),
  );
  const own =
    transactions.rows?.filter(({ authorization_id }) => authorization_id === authorization.id) ?? [];
  const refunds = transactions.rows?.filter(({ refunded_transaction_id }) =>
    own.some(({ id }) => id === refunded_transaction_id),
  );
  const rows = [...(refunds ?? []), ...own];
  if (rows.length === 0 && !transactions.hasNextPage) return null;
  return (
    <Panel
      title="Transactions"
      action={
        transactions.hasNextPage && (
          <Button small onClick={() => void transactions.fetchNextPage()}>
            Look further back
          </Button>
        )
      }
    >
      <Table
        label="Transactions of the authorization"
        rows={rows}
        columns={[
          { head: 'Type', cell: ({ type }) => <Status of={type} /> },
          { head: 'Amount', isNumber: true, cell: ({ amount }) => <Money cents={amount} /> },
          {
            head: 'Paid by the card',
            isNumber: true,
            isWide: true,
            cell: ({ card_amount }) => <Money cents={card_amount} />,
          },
          {
            head: 'By your balance',
            isNumber: true,
            isWide: true,
            cell: ({ partner_balance_amount }) => <Money cents={partner_balance_amount} />,
          },
          { head: 'Time', cell: ({ created }) => <Time at={created} /> },
        ]}
      />
    </Panel>
  );
}

const STEPS = {
  increment: { title: 'Increment', hint: 'How much more the merchant asks for.' },
  capture: { title: 'Capture', hint: 'Leave it empty for all that is left.' },
  reverse: { title: 'Reverse', hint: 'Leave it empty for all that is left.' },
  expire: { title: 'Expire', hint: '' },
};

/** What the merchant does next with a test authorization. */
function StepDialog({
  step,
  authorization: { id },
  onClose,
}: {
  step: Step;
  authorization: AuthorizationObject;
  onClose: () => void;
}) {
  const { api, say } = useWorkbench();
  const { title, hint } = STEPS[step];
  const act = useAction(
    async ({ amount, isFinal }: { amount: number | undefined; isFinal: boolean }, options) => {
      const body = amount === undefined ? {} : { amount };
      switch (step) {
        case 'increment': {
          const { amount: total } = await api.testHelpers.incrementAuthorization(
            id,
            { amount: amount ?? 0 },
            options,
          );
          return `${formatMoney(total)} authorized.`;
        }
        case 'capture': {
          const taken = await api.testHelpers.captureAuthorization(id, { ...body, final: isFinal }, options);
          return `The merchant has taken ${formatMoney(taken.amount)}.`;
        }
        case 'reverse':
          await api.testHelpers.reverseAuthorization(id, body, options);
          return 'The merchant has given it back.';
        case 'expire':
          await api.testHelpers.expireAuthorization(id, options);
          return 'It has expired.';
      }
    },
    (message) => {
      say(message);
      onClose();
    },
  );
  return (
    <FormDialog
      title={title}
      action={act}
      submit={title}
      onClose={onClose}
      toInput={(typed) => ({
        amount: typed.money('amount'),
        isFinal: step === 'capture' && typed.checked('final').length > 0,
      })}
    >
      {step === 'expire' ? (
        <p>What it holds is released now.</p>
      ) : (
        <MoneyField name="amount" label="Amount in dollars" hint={hint} />
      )}
      {step === 'capture' && <CheckField name="final" label="Release what is left" defaultChecked />}
    </FormDialog>
  );
}
