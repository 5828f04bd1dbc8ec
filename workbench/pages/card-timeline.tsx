import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Event } from '../../client/generated/types.gen.ts';
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
  what: ReactNode;
  status: string | null;
  amount: ReactNode;
  events: readonly Event[];
}

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

  const told = Map.groupBy(events.rows ?? [], (event) => subjectOf(event)?.id);
  const { rows, hasOlder, end } = mergeTimeline<Line>([
    lines(authorizations, ({ id, created, status, amount, merchant, decline_reason }) => ({
      id,
      created,
      status,
      events: told.get(id) ?? [],
      what: (
        <>
          <Link to="/payments/$authorizationId" params={{ authorizationId: id }}>
            Authorization
          </Link>
          <span>{merchant.name}</span>
          {decline_reason !== null && <span>{formatCode(decline_reason)}</span>}
        </>
      ),
      amount: <Money cents={amount} />,
    })),
    lines(
      transactions,
      ({ id, created, type, status, amount, merchant, decline_reason, authorization_id }) => ({
        id,
        created,
        status,
        events: told.get(id) ?? [],
        what: (
          <>
            <span>{formatCode(type)}</span>
            <span>{merchant.name}</span>
            {decline_reason !== null && <span>{formatCode(decline_reason)}</span>}
            {authorization_id !== null && (
              <Link to="/payments/$authorizationId" params={{ authorizationId: authorization_id }}>
                its authorization
              </Link>
            )}
          </>
        ),
        amount:
          type === 'decline' ? (
            <Money cents={amount} />
          ) : (
            <Money cents={type === 'refund' ? amount : -amount} change />
          ),
      }),
    ),
    lines(topups, ({ id, created, status, amount, failure_code }) => ({
      id,
      created,
      status,
      events: told.get(id) ?? [],
      what: <Named name="Top-up" failure={failure_code} />,
      amount: <Money cents={amount} change />,
    })),
    lines(withdrawals, ({ id, created, status, amount, failure_code }) => ({
      id,
      created,
      status,
      events: told.get(id) ?? [],
      what: <Named name="Withdrawal" failure={failure_code} />,
      amount: <Money cents={-amount} change />,
    })),
    lines(events, (event) => ({
      id: event.id,
      created: event.created,
      status: null,
      what: subjectOf(event)?.id === cardId ? <span>{EVENT_WORDS[event.type] ?? event.type}</span> : null,
      amount: null,
      events: [event],
    })),
  ]);
  return (
    <>
      {failed && <Problem error={failed.error} />}
      {rows.length === 0 && <Note>Nothing yet.</Note>}
      <ol className={css.timeline}>
        {rows
          .filter(({ what }) => what !== null)
          .map(({ id, created, what, status, amount, events: about }) => (
            <li key={id}>
              <div className={css.what}>
                {what}
                {status !== null && <Status of={status} />}
              </div>
              <div className={css.side}>{amount}</div>
              <div className={css.told}>
                {about.map((event) => (
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

const Named = ({ name, failure }: { name: string; failure: string | null }) => (
  <>
    <span>{name}</span>
    {failure !== null && <span>{formatCode(failure)}</span>}
  </>
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
