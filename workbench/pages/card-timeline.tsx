import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type {
  Authorization,
  Event,
  Topup,
  Transaction,
  Withdrawal,
} from '../../client/generated/types.gen.ts';
import { formatCode } from '../format.ts';
import { type ListReading, useList } from '../reading.ts';
import { subjectOf } from '../subject.ts';
import { mergeTimeline } from '../timeline.ts';
import { Button, Loading, Money, Note, Problem, Status, Time } from '../ui/parts.tsx';
import { useWorkbench } from '../workbench.ts';
import css from './card.module.css';

const PAGE = { pageSize: 20 };

/** A line of the timeline: an object with the events about it, or an event about the card itself. */
interface Line {
  id: string;
  created: string;
  /** Null for an event that stands with its object. */
  title: ReactNode;
  status?: string;
  merchant?: { name: string | null };
  /** Why it was declined, or has failed. */
  code?: string | null;
  amount?: ReactNode;
}

const ofAuthorization = (authorization: Authorization): Line => ({
  ...authorization,
  title: <AuthorizationLink id={authorization.id}>Authorization</AuthorizationLink>,
  code: authorization.decline_reason,
  amount: <Money cents={authorization.amount} />,
});

const ofTransaction = ({ authorization_id, ...transaction }: Transaction): Line => ({
  ...transaction,
  title: (
    <>
      <span>{formatCode(transaction.type)}</span>
      {authorization_id !== null && (
        <AuthorizationLink id={authorization_id}>its authorization</AuthorizationLink>
      )}
    </>
  ),
  code: transaction.decline_reason,
  amount: (
    <Money
      cents={transaction.type === 'purchase' ? -transaction.amount : transaction.amount}
      change={transaction.type !== 'decline'}
    />
  ),
});

const ofTopup = (topup: Topup): Line => ({
  ...topup,
  title: <span>Top-up</span>,
  code: topup.failure_code,
  amount: <Money cents={topup.amount} change />,
});

const ofWithdrawal = (withdrawal: Withdrawal): Line => ({
  ...withdrawal,
  title: <span>Withdrawal</span>,
  code: withdrawal.failure_code,
  amount: <Money cents={-withdrawal.amount} change />,
});

const ofEvent = (event: Event, cardId: string): Line => ({
  id: event.id,
  created: event.created,
  title: subjectOf(event)?.id === cardId ? <span>{EVENT_WORDS[event.type] ?? event.type}</span> : null,
});

/** Everything that happened to a card, newest first, each line with the events that told of it. */
export function CardTimeline({ cardId }: { cardId: string }) {
  const { api, can } = useWorkbench();
  const authorizations = useList(
    ['card', cardId, 'authorizations'],
    (query, options) => api.authorizations.list(cardId, query, options),
    PAGE,
  );
  const transactions = useList(
    ['card', cardId, 'transactions'],
    (query, options) => api.transactions.list(cardId, query, options),
    PAGE,
  );
  const topups = useList(
    ['card', cardId, 'topups'],
    (query, options) => api.topups.list(cardId, query, options),
    PAGE,
  );
  const withdrawals = useList(
    ['card', cardId, 'withdrawals'],
    (query, options) => api.withdrawals.list(cardId, query, options),
    PAGE,
  );
  const events = useList(
    ['card', cardId, 'events'],
    (query, options) => api.events.list({ ...query, card_id: cardId }, options),
    { pageSize: 50, isAllowed: can('events:read') },
  );
  const lists = [authorizations, transactions, topups, withdrawals, events];
  const failed = lists.find(({ error }) => error !== null);
  if (lists.some(({ rows, isLoading }) => rows === undefined && isLoading)) return <Loading />;

  // An event about the card itself is a line of its own, and every other one stands with its object.
  const told = Map.groupBy(events.rows ?? [], (event) => {
    const subjectId = subjectOf(event)?.id;
    return subjectId === cardId ? event.id : subjectId;
  });
  const { rows, hasOlder, end } = mergeTimeline<Line>([
    lines(authorizations, ofAuthorization),
    lines(transactions, ofTransaction),
    lines(topups, ofTopup),
    lines(withdrawals, ofWithdrawal),
    lines(events, (event) => ofEvent(event, cardId)),
  ]);
  return (
    <>
      {failed && <Problem error={failed.error} />}
      {rows.length === 0 && <Note>Nothing yet.</Note>}
      <ol className={css.timeline}>
        {rows
          .filter(({ title }) => title !== null)
          .map(({ id, created, title, status, merchant, code, amount }) => (
            <li key={id}>
              <div className={css.what}>
                {title}
                {merchant && <span>{merchant.name}</span>}
                {code && <span>{formatCode(code)}</span>}
                {status && <Status of={status} />}
              </div>
              <div className={css.side}>{amount}</div>
              <div className={css.told}>
                {told.get(id)?.map((event) => (
                  <Link key={event.id} to="/events/$eventId" params={{ eventId: event.id }}>
                    <code>{event.type}</code> <Status of={event.delivery.status} />
                  </Link>
                ))}
              </div>
              <div className={css.side}>
                <Time at={created} />
              </div>
            </li>
          ))}
      </ol>
      {hasOlder && (
        <Button
          disabled={lists.some(({ isFetchingNextPage }) => isFetchingNextPage)}
          onClick={() => {
            for (const list of lists) {
              if (list.hasNextPage && (list.rows?.at(-1)?.created ?? '') >= end) void list.fetchNextPage();
            }
          }}
        >
          Load older
        </Button>
      )}
    </>
  );
}

const AuthorizationLink = ({ id, children }: { id: string; children: string }) => (
  <Link to="/payments/$authorizationId" params={{ authorizationId: id }}>
    {children}
  </Link>
);

const lines = <T,>({ rows, hasNextPage }: ListReading<T>, toLine: (row: T) => Line) => ({
  rows: rows?.map(toLine),
  hasNextPage,
});

const EVENT_WORDS: Record<string, string> = {
  'card.issued': 'The card was issued',
  'card.issue_failed': 'The card could not be issued',
  'card.updated': 'The card was changed',
  'card.frozen': 'The card was frozen',
  'card.unfrozen': 'The card was unfrozen',
  'card.blocked': 'The card was blocked',
};
