import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { EVENT_TYPES } from '../../client/generated/resources.gen.ts';
import type { EndpointDelivery, Event as EventObject } from '../../client/generated/types.gen.ts';
import { useAction, useList, useOne } from '../reading.ts';
import { subjectOf } from '../subject.ts';
import { FormDialog, SelectField } from '../ui/form.tsx';
import {
  Button,
  Empty,
  Facts,
  Id,
  Json,
  Loaded,
  Note,
  PageHead,
  Panel,
  ResourceLink,
  Stack,
  Status,
  Time,
} from '../ui/parts.tsx';
import { FilterBar, ListTable, Table, TIMES, useFilters } from '../ui/table.tsx';
import { useWorkbench } from '../workbench.ts';

const DELIVERY_STATUSES = ['pending', 'delivered', 'retrying', 'given_up', 'parked', 'no_endpoint'] as const;

export function Events() {
  const { api } = useWorkbench();
  const filters = useFilters();
  const list = useList(['events', filters], (query, options) =>
    api.events.list({ ...query, ...filters }, options),
  );
  return (
    <>
      <PageHead title="Events">
        <Link to="/endpoints">Endpoints and replay</Link>
      </PageHead>
      <FilterBar
        filters={[
          { name: 'type', label: 'Type', options: EVENT_TYPES },
          { name: 'delivery_status', label: 'Delivery', options: DELIVERY_STATUSES },
          { name: 'card_id', label: 'Card id' },
          ...TIMES,
        ]}
      />
      <ListTable
        label="Events"
        list={list}
        empty={
          <Empty title="Nothing has happened yet">
            Every change creates an event, which we keep for 30 days.
          </Empty>
        }
        columns={[
          {
            head: 'Event',
            cell: ({ id, type }) => (
              <Link to="/events/$eventId" params={{ eventId: id }}>
                <code>{type}</code>
              </Link>
            ),
          },
          { head: 'About', isWide: true, cell: (event) => <ResourceLink of={subjectOf(event)} /> },
          { head: 'Delivery', cell: ({ delivery }) => <Status of={delivery.status} /> },
          {
            head: 'Attempts',
            isNumber: true,
            isWide: true,
            cell: ({ delivery }) => delivery.attempts.length,
          },
          { head: 'Created', isWide: true, cell: ({ created }) => <Time at={created} /> },
        ]}
      />
    </>
  );
}

export function Event() {
  const { eventId } = useParams({ from: '/events/$eventId' });
  const { api, can } = useWorkbench();
  const event = useOne(['event', eventId], (options) => api.events.get(eventId, options));
  const [isResending, setResending] = useState(false);
  return (
    <Loaded reading={event}>
      {(data) => (
        <>
          <PageHead above={<Link to="/events">Events</Link>} title={<code>{data.type}</code>}>
            {can('webhooks:write') && (
              <Button data-new onClick={() => setResending(true)}>
                Resend
              </Button>
            )}
          </PageHead>
          <Stack>
            <Panel title="About">
              <Facts
                of={[
                  ['Id', <Id key="id" of={data.id} what="event id" />],
                  ['About', <ResourceLink key="about" of={subjectOf(data)} />],
                  ['Created', <Time key="created" at={data.created} />],
                ]}
              />
            </Panel>
            {data.deliveries.length === 0 && (
              <Panel title="Deliveries">
                <Note>No endpoint is subscribed to this event.</Note>
              </Panel>
            )}
            {data.deliveries.map((delivery) => (
              <Delivery key={delivery.endpoint_id} delivery={delivery} />
            ))}
            <Panel title="Payload">
              <Json
                label="Payload"
                value={{
                  id: data.id,
                  type: data.type,
                  created: data.created,
                  mode: data.mode,
                  data: data.data,
                }}
              />
            </Panel>
          </Stack>
          {isResending && <ResendDialog event={data} onClose={() => setResending(false)} />}
        </>
      )}
    </Loaded>
  );
}

function Delivery({
  delivery: { endpoint_id, status, next_attempt_at, attempts },
}: {
  delivery: EndpointDelivery;
}) {
  return (
    <Panel title={`Delivery to ${endpoint_id}`} action={<Status of={status} />}>
      <p>
        <Link to="/endpoints/$endpointId" params={{ endpointId: endpoint_id }}>
          The endpoint
        </Link>
        {next_attempt_at !== null && (
          <>
            {' · the next attempt is at '}
            <Time at={next_attempt_at} />
          </>
        )}
      </p>
      {attempts.length === 0 ? (
        <Note>Nothing was sent yet.</Note>
      ) : (
        <Table
          label={`Attempts at ${endpoint_id}`}
          rows={attempts.toReversed().map((attempt) => ({ ...attempt, id: String(attempt.number) }))}
          columns={[
            { head: 'Attempt', isNumber: true, cell: ({ number }) => number },
            {
              head: 'Outcome',
              cell: (attempt) => <Status of={attempt.status} label={attempt.error ?? undefined} />,
            },
            { head: 'HTTP', isNumber: true, cell: ({ http_status }) => http_status ?? '—' },
            { head: 'Took', isNumber: true, isWide: true, cell: ({ duration_ms }) => `${duration_ms} ms` },
            { head: 'Began', isWide: true, cell: ({ started_at }) => <Time at={started_at} /> },
          ]}
        />
      )}
    </Panel>
  );
}

function ResendDialog({ event, onClose }: { event: EventObject; onClose: () => void }) {
  const { api, say } = useWorkbench();
  const resend = useAction(
    (body: { endpoint_id?: string }) => api.events.resend(event.id, body),
    () => {
      say('The event is sent again.');
      onClose();
    },
  );
  return (
    <FormDialog
      title="Resend the event"
      action={resend}
      submit="Resend"
      onClose={onClose}
      toInput={(typed) => {
        const endpoint_id = typed.text('endpoint_id');
        return endpoint_id === undefined ? {} : { endpoint_id };
      }}
    >
      <SelectField
        name="endpoint_id"
        label="To"
        hint="It has the same id and body."
        options={[
          ['', 'Each endpoint that is subscribed to it'],
          ...event.deliveries.map(({ endpoint_id }) => [endpoint_id, endpoint_id] as const),
        ]}
      />
    </FormDialog>
  );
}
