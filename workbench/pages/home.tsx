import { Link } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import type { CardStatus, OverviewDay } from '../../client/generated/types.gen.ts';
import { formatCount, formatDay } from '../format.ts';
import { useList, useOne } from '../reading.ts';
import {
  Button,
  buttonClass,
  Empty,
  Figures,
  Loaded,
  Money,
  Note,
  PageHead,
  Panel,
  Stack,
  Status,
  Time,
  Two,
} from '../ui/parts.tsx';
import { useWorkbench } from '../workbench.ts';
import { CreditDialog } from './credit.tsx';
import css from './home.module.css';

const CHART_AGAIN_MS = 5_000;
/** A page without its chart has the figures all the same, so a chart that can't be loaded is tried again. */
const DaysChart = lazy(async () => {
  for (;;) {
    try {
      return { default: (await import('../ui/days-chart.tsx')).DaysChart };
    } catch {
      await new Promise((resolve) => setTimeout(resolve, CHART_AGAIN_MS));
    }
  }
});
const STATUSES: CardStatus[] = ['active', 'funding_pending', 'frozen', 'blocked', 'failed'];

export function Home() {
  const { session, api, can } = useWorkbench();
  const [isCrediting, setCrediting] = useState(false);
  const seesBalance = can('balance:read');
  const seesOverview = can('balance:read', 'cards:read');
  const balance = useOne(['balance'], (options) => api.balance.get(options), { isAllowed: seesBalance });
  const overview = useOne(['overview'], (options) => api.overview.get(options), { isAllowed: seesOverview });
  const mayCredit = session.mode === 'test' && can('test:write');
  const isNew =
    balance.data?.total === 0 &&
    overview.data !== undefined &&
    Object.values(overview.data.cards).every((n) => n === 0);
  const credit = mayCredit && <Button onClick={() => setCrediting(true)}>Add test money</Button>;
  return (
    <>
      <PageHead title="Home">
        {credit}
        {can('cards:read', 'cards:write') && (
          <Link to="/cards" search={{}} hash="issue" className={buttonClass('primary')} data-new>
            Issue a card
          </Link>
        )}
      </PageHead>
      <Stack>
        {isNew && (
          <Panel title="Begin here">
            <Empty
              title={mayCredit ? 'Add test money, then issue your first card' : 'Fund your balance first'}
              action={credit || null}
            >
              {mayCredit
                ? 'Test money is available immediately. Loading a card draws from your balance.'
                : 'A deposit in USDT funds your live balance. Loading a card draws from it.'}
            </Empty>
          </Panel>
        )}
        {seesBalance && (
          <Panel title="Balance" action={<Link to="/balance">Transactions</Link>}>
            <Loaded reading={balance}>
              {({ available, held, total }) => (
                <Figures
                  of={[
                    ['Available', <Money key="a" cents={available} />],
                    ['Held for operations', <Money key="h" cents={held} />],
                    ['Total', <Money key="t" cents={total} />],
                  ]}
                />
              )}
            </Loaded>
            {overview.data && <Days days={overview.data.days} what="balance" />}
          </Panel>
        )}
        {seesOverview && (
          <Two>
            <Panel title="Spending by day">
              <Loaded reading={overview}>{({ days }) => <Days days={days} what="spending" />}</Loaded>
            </Panel>
            <Panel title="Cards" action={<Link to="/cards">All cards</Link>}>
              <Loaded reading={overview}>
                {({ cards, pending_operations, deposits_waiting }) => (
                  <>
                    <ul className={css.counts}>
                      {STATUSES.map((status) => (
                        <li key={status}>
                          <Link to="/cards" search={{ status }}>
                            <Status of={status} />
                            <b>{cards[status].toLocaleString('en-US')}</b>
                          </Link>
                        </li>
                      ))}
                    </ul>
                    <h3 className={css.waits}>What waits</h3>
                    <ul className={css.counts}>
                      <li>
                        <Link to="/requests/operations" search={{}}>
                          Pending operations <b>{formatCount(pending_operations)}</b>
                        </Link>
                      </li>
                      <li>
                        <Link to="/deposits">
                          Deposits that wait <b>{formatCount(deposits_waiting)}</b>
                        </Link>
                      </li>
                    </ul>
                  </>
                )}
              </Loaded>
            </Panel>
          </Two>
        )}
        {can('events:read') && (
          <Two>
            <Endpoints />
            <LatestEvents />
          </Two>
        )}
      </Stack>
      {isCrediting && <CreditDialog onClose={() => setCrediting(false)} />}
    </>
  );
}

function Days({ days, what }: { days: OverviewDay[]; what: 'balance' | 'spending' }) {
  return (
    <figure
      aria-label={what === 'balance' ? 'Balance at the end of each day' : 'Spent and refunded on each day'}
    >
      <div className={css.chart}>
        <Suspense fallback={null}>
          <DaysChart days={days} what={what} />
        </Suspense>
      </div>
      <details className={css.days}>
        <summary>As a table (days in UTC)</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard. */}
        <section tabIndex={0} aria-label="Days">
          <table>
            <thead>
              <tr>
                <th scope="col">Day</th>
                {what === 'balance' ? (
                  <th scope="col">Balance</th>
                ) : (
                  <>
                    <th scope="col">Spent</th>
                    <th scope="col">Refunded</th>
                  </>
                )}
              </tr>
            </thead>
            <tbody>
              {days.toReversed().map(({ date, closing_balance, spent, refunded }) => (
                <tr key={date}>
                  <td>{formatDay(date)}</td>
                  {what === 'balance' ? (
                    <td>
                      <Money cents={closing_balance} />
                    </td>
                  ) : (
                    <>
                      <td>
                        <Money cents={spent} />
                      </td>
                      <td>
                        <Money cents={refunded} />
                      </td>
                    </>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      </details>
    </figure>
  );
}

function Endpoints() {
  const { api } = useWorkbench();
  const endpoints = useList(['endpoints'], (query, options) => api.webhookEndpoints.list(query, options));
  return (
    <Panel title="Endpoints" action={<Link to="/endpoints">All endpoints</Link>}>
      <Loaded reading={{ ...endpoints, data: endpoints.rows }}>
        {(rows) =>
          rows.length === 0 ? (
            <Note>No endpoint is subscribed to events yet.</Note>
          ) : (
            <ul className={css.counts}>
              {rows.map(({ id, url, status, consecutive_failures }) => (
                <li key={id}>
                  <Link to="/endpoints/$endpointId" params={{ endpointId: id }}>
                    <code>{url}</code>
                    {consecutive_failures > 0 && status === 'enabled' ? (
                      <Status of="failing" label={`${consecutive_failures} failures`} />
                    ) : (
                      <Status of={status} />
                    )}
                  </Link>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function LatestEvents() {
  const { api } = useWorkbench();
  const events = useList(['events', 'latest'], (query, options) => api.events.list(query, options), {
    pageSize: 8,
  });
  return (
    <Panel title="Latest events" action={<Link to="/events">All events</Link>}>
      <Loaded reading={{ ...events, data: events.rows }}>
        {(rows) =>
          rows.length === 0 ? (
            <Note>Nothing has happened yet. Issue a card, and its event appears here.</Note>
          ) : (
            <ol className={css.events}>
              {rows.slice(0, 8).map(({ id, type, created, delivery }) => (
                <li key={id}>
                  <Link to="/events/$eventId" params={{ eventId: id }}>
                    <code>{type}</code>
                    <Status of={delivery.status} />
                    <Time at={created} />
                  </Link>
                </li>
              ))}
            </ol>
          )
        }
      </Loaded>
    </Panel>
  );
}
