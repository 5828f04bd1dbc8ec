import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import type { Card as CardObject } from '../../client/generated/types.gen.ts';
import { formatCode } from '../format.ts';
import { useOne } from '../reading.ts';
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
  Stack,
  Status,
  Time,
} from '../ui/parts.tsx';
import { useWorkbench } from '../workbench.ts';
import css from './card.module.css';
import { CardDialog, type CardDialogName } from './card-dialogs.tsx';
import { CardTimeline } from './card-timeline.tsx';
import { SimulateDialog } from './simulate.tsx';

export function Card() {
  const { cardId } = useParams({ from: '/cards/$cardId' });
  const { api } = useWorkbench();
  const card = useOne(['card', cardId], (options) => api.cards.get(cardId, options));
  return <Loaded reading={card}>{(data) => <OneCard card={data} />}</Loaded>;
}

function OneCard({ card }: { card: CardObject }) {
  const { session, can } = useWorkbench();
  const [dialog, setDialog] = useState<CardDialogName | 'simulate' | null>(null);
  const { id, status, last4, mode } = card;
  const isIssued = last4 !== null;
  const offered: [CardDialogName | 'simulate', string, boolean][] = [
    ['topup', 'Top up', can('cards:write') && status === 'active'],
    ['withdraw', 'Withdraw', can('cards:write') && (status === 'active' || status === 'frozen')],
    ['reveal', 'Reveal', can('secure_details:read') && (status === 'active' || status === 'frozen')],
    ['simulate', 'Simulate', session.mode === 'test' && can('test:write') && isIssued],
    ['edit', 'Edit', can('cards:write') && status !== 'failed'],
    ['freeze', 'Freeze', can('cards:write') && status === 'active'],
    ['unfreeze', 'Unfreeze', can('cards:write') && status === 'frozen'],
    ['block', 'Block', can('cards:write') && (status === 'active' || status === 'frozen')],
  ];
  return (
    <>
      <PageHead
        above={<Link to="/cards">Cards</Link>}
        title={`Card ${last4 === null ? '' : `•••• ${last4}`}`}
      >
        {offered.map(
          ([name, label, isOffered], index) =>
            isOffered && (
              <Button
                key={name}
                kind={name === 'block' ? 'danger' : undefined}
                data-new={index === 0 ? '' : undefined}
                onClick={() => setDialog(name)}
              >
                {label}
              </Button>
            ),
        )}
      </PageHead>
      <Stack>
        <div className={css.top}>
          <Stack>
            <div className={css.card} data-status={status}>
              <div>
                <b>{card.card_name ?? card.external_ref}</b>
                <span>{formatCode(card.network)}</span>
              </div>
              <span className={css.number}>•••• •••• •••• {last4 ?? '····'}</span>
              <div>
                <b>
                  {[card.cardholder_first_name, card.cardholder_last_name].filter(Boolean).join(' ') || mode}
                </b>
                <span>
                  {card.exp_month === null
                    ? '··/··'
                    : `${String(card.exp_month).padStart(2, '0')}/${String(card.exp_year).slice(-2)}`}
                </span>
              </div>
            </div>
            <Panel title="About">
              <Facts
                of={[
                  ['Id', <Id key="id" of={id} what="card id" />],
                  ['Reference', <Id key="ref" of={card.external_ref} what="reference" />],
                  ['Label', card.card_name],
                  ['Email', card.email],
                  ['Product', card.product_code],
                  ['Created', <Time key="created" at={card.created} />],
                  ...Object.entries(card.metadata).map(([key, value]): [string, string] => [key, value]),
                ]}
              />
            </Panel>
          </Stack>
          <Stack>
            <Panel title="Money" action={<Status of={status} />}>
              <Figures
                of={[
                  ['Available', <Money key="a" cents={card.available_balance} />],
                  ['Held', <Money key="h" cents={card.balance - card.available_balance} />],
                  ['Balance', <Money key="b" cents={card.balance} />],
                ]}
              />
              {card.failure_code !== null && (
                <Note>It failed: {formatCode(card.failure_code).toLowerCase()}.</Note>
              )}
              {status === 'funding_pending' && (
                <Note>Waiting for the card network. This page updates automatically.</Note>
              )}
            </Panel>
            <Controls card={card} onEdit={() => setDialog('controls')} />
          </Stack>
        </div>
        <Panel title="What happened">
          <CardTimeline cardId={id} />
        </Panel>
      </Stack>
      {dialog === 'simulate' && <SimulateDialog card={card} onClose={() => setDialog(null)} />}
      {dialog !== null && dialog !== 'simulate' && (
        <CardDialog name={dialog} card={card} onClose={() => setDialog(null)} />
      )}
    </>
  );
}

function Controls({ card, onEdit }: { card: CardObject; onEdit: () => void }) {
  const { api, can } = useWorkbench();
  const limits = useOne(['limits', card.id], (options) => api.spendingLimits.list(card.id, options));
  const controls = card.spending_controls;
  const mayEdit = can('cards:write') && card.status !== 'failed';
  const lists: [string, string[] | null | undefined][] = [
    ['Only categories', controls?.allowed_categories],
    ['No categories', controls?.blocked_categories],
    ['Only countries', controls?.allowed_merchant_countries],
    ['No countries', controls?.blocked_merchant_countries],
  ];
  const facts = lists.flatMap(([name, values]): [string, string][] =>
    values ? [[name, values.join(', ')]] : [],
  );
  return (
    <Panel
      title="Controls and limits"
      action={
        mayEdit && (
          <Button small onClick={onEdit}>
            Edit
          </Button>
        )
      }
    >
      <Facts of={facts} />
      <Loaded reading={limits}>
        {({ data }) =>
          data.length === 0 && facts.length === 0 ? (
            <Note>Nothing is restricted: the card can spend what is on it, anywhere.</Note>
          ) : (
            <ul className={css.limits}>
              {data.map((limit) => {
                const name = `${formatCode(limit.interval)}${limit.categories ? ` (${limit.categories.join(', ')})` : ''}`;
                return (
                  <li key={`${limit.source}-${name}-${limit.amount}`}>
                    <div>
                      <span>{name}</span>
                      <span>
                        <Money cents={limit.remaining} /> of <Money cents={limit.amount} /> left
                      </span>
                    </div>
                    <meter
                      aria-label={`${name}: spent`}
                      min={0}
                      max={limit.amount}
                      value={Math.min(limit.spent, limit.amount)}
                    />
                    <small>
                      {limit.source === 'account' ? 'A limit of your account. ' : ''}
                      {limit.resets_at !== null && (
                        <>
                          Resets <Time at={limit.resets_at} />
                        </>
                      )}
                    </small>
                  </li>
                );
              })}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}
