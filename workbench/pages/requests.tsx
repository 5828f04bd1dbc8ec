import { Link, useParams } from '@tanstack/react-router';
import type { Operation } from '../../client/generated/types.gen.ts';
import { formatCode } from '../format.ts';
import { useList, useOne } from '../reading.ts';
import {
  Empty,
  Facts,
  Id,
  Loaded,
  Note,
  PageHead,
  Panel,
  ResourceLink,
  Stack,
  Status,
  Tabs,
  Time,
} from '../ui/parts.tsx';
import { FilterBar, ListTable, TIMES, useFilters } from '../ui/table.tsx';
import { useWorkbench } from '../workbench.ts';

const STATUSES = ['2xx', '4xx', '5xx', '400', '401', '403', '404', '409', '422', '429', '499', '503'];
const OPERATION_STATUSES = ['in_progress', 'awaiting_review', 'completed'] as const;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

const HttpStatus = ({ status }: { status: number }) => (
  <Status of={status < 300 ? 'succeeded' : status < 500 ? 'declined' : 'failed'} label={String(status)} />
);

/** A path that fits into a line: of each id, its kind and its end. */
const shortIds = (path: string): string =>
  path.replace(/^\/v1/, '').replace(/\b([a-z]+_)[0-9a-z]{20}([0-9a-z]{6})\b/g, '$1…$2');

export function Requests() {
  const { api } = useWorkbench();
  const filters = useFilters();
  const list = useList(['requests', filters], (query, options) =>
    api.requests.list({ ...query, ...filters }, options),
  );
  return (
    <>
      <Head />
      <FilterBar
        filters={[
          { name: 'status', label: 'Status', options: STATUSES },
          { name: 'method', label: 'Method', options: METHODS },
          { name: 'path_prefix', label: 'Path begins with' },
          { name: 'api_key_id', label: 'API key id' },
          ...TIMES,
        ]}
      />
      <ListTable
        label="Requests"
        list={list}
        empty={
          <Empty title="No requests yet">
            Requests from your servers appear here for 7 days, without bodies or query strings. Successful GET
            requests don’t.
          </Empty>
        }
        columns={[
          {
            head: 'Request',
            cell: ({ id, method, path }) => (
              <Link to="/requests/$requestId" params={{ requestId: id }}>
                <code title={path}>
                  {method} {shortIds(path)}
                </code>
              </Link>
            ),
          },
          { head: 'Status', cell: ({ status }) => <HttpStatus status={status} /> },
          { head: 'Error', isWide: true, cell: ({ error }) => error && <code>{error.code}</code> },
          { head: 'Took', isNumber: true, isWide: true, cell: ({ duration_ms }) => `${duration_ms} ms` },
          { head: 'Time', isWide: true, cell: ({ created }) => <Time at={created} /> },
        ]}
      />
    </>
  );
}

function Head() {
  const { can } = useWorkbench();
  return (
    <>
      <PageHead title="Requests" />
      <Tabs
        label="Requests"
        of={[
          ...(can('requests:read') ? [{ to: '/requests', label: 'Requests' }] : []),
          ...(can('cards:read') ? [{ to: '/requests/operations', label: 'Operations' }] : []),
        ]}
      />
    </>
  );
}

/** What became of requests with an Idempotency-Key: all that waits is here, too. */
export function Operations() {
  const { api } = useWorkbench();
  const filters = useFilters();
  const list = useList(['operations', filters], (query, options) =>
    api.operations.list({ ...query, ...filters }, options),
  );
  return (
    <>
      <Head />
      <FilterBar
        filters={[
          { name: 'status', label: 'Status', options: OPERATION_STATUSES },
          { name: 'idempotency_key', label: 'Idempotency-Key' },
          ...TIMES,
        ]}
      />
      <ListTable
        label="Operations"
        list={list}
        empty={
          <Empty title="No operations yet">Each request with an Idempotency-Key is one, for 30 days.</Empty>
        }
        columns={[
          {
            head: 'Operation',
            cell: ({ id, type }) => (
              <Link to="/requests/operations/$operationId" params={{ operationId: id }}>
                {formatCode(type)}
              </Link>
            ),
          },
          { head: 'Status', cell: ({ status }) => <Status of={status} /> },
          { head: 'Waits for', isWide: true, cell: ({ waits_for }) => waits_for && formatCode(waits_for) },
          { head: 'Made', isWide: true, cell: ({ resource }) => <ResourceLink of={resource} /> },
          { head: 'Sent', isWide: true, cell: ({ created }) => <Time at={created} /> },
        ]}
      />
    </>
  );
}

export function OneOperation() {
  const { operationId } = useParams({ from: '/requests/operations/$operationId' });
  return (
    <>
      <PageHead above={<Link to="/requests/operations">Operations</Link>} title="Operation" />
      <OperationPanel id={operationId} />
    </>
  );
}

export function Request() {
  const { requestId } = useParams({ from: '/requests/$requestId' });
  const { api, can } = useWorkbench();
  const request = useOne(['request', requestId], (options) => api.requests.get(requestId, options));
  return (
    <Loaded reading={request}>
      {(data) => (
        <>
          <PageHead
            above={<Link to="/requests">Requests</Link>}
            title={
              <code>
                {data.method} {data.path}
              </code>
            }
          />
          <Stack>
            <Panel title="About" action={<HttpStatus status={data.status} />}>
              <Facts
                of={[
                  ['Id', <Id key="id" of={data.id} what="request id" />],
                  ['Error', data.error && <code key="error">{data.error.code}</code>],
                  ['Field', data.error?.param ? <code key="param">{data.error.param}</code> : null],
                  ['API key', <code key="key">{data.api_key_id}</code>],
                  ['From', data.address],
                  ['Idempotency-Key', data.idempotency_key && <code key="idem">{data.idempotency_key}</code>],
                  ['Took', `${data.duration_ms} ms`],
                  ['Arrived', <Time key="created" at={data.created} />],
                ]}
              />
              <Note>These times ignore the test clock.</Note>
            </Panel>
            {data.operation_id !== null && can('cards:read') && <OperationPanel id={data.operation_id} />}
          </Stack>
        </>
      )}
    </Loaded>
  );
}

/** What became of it, and what it waits for. */
function OperationPanel({ id }: { id: string }) {
  const { api } = useWorkbench();
  const operation = useOne(['operation', id], (options) => api.operations.get(id, options));
  return (
    <Panel title="Its operation" action={operation.data && <Status of={operation.data.status} />}>
      <Loaded reading={operation}>
        {(data) => (
          <>
            <p>{whyPending(data)}</p>
            <Facts
              of={[
                ['Operation', <Id key="id" of={data.id} what="operation id" />],
                ['Type', formatCode(data.type)],
                ['Made', <ResourceLink key="resource" of={data.resource} />],
                ['First response', data.response_status === null ? null : String(data.response_status)],
                ['Sent', <Time key="created" at={data.created} />],
                ['Asked the network', data.network && `${data.network.asked} times`],
                ['Its last answer', data.network?.last_answer ? formatCode(data.network.last_answer) : null],
                [
                  'Asked last',
                  data.network?.last_asked_at ? <Time key="last" at={data.network.last_asked_at} /> : null,
                ],
                [
                  'Asks again',
                  data.network?.next_ask_at ? <Time key="next" at={data.network.next_ask_at} /> : null,
                ],
                [
                  'The network can decide until',
                  data.network?.deadline ? <Time key="deadline" at={data.network.deadline} /> : null,
                ],
                ['Completed', data.completed_at && <Time key="completed" at={data.completed_at} />],
              ]}
            />
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function whyPending({ status, waits_for, network }: Operation): string {
  if (status === 'completed') return 'Completed.';
  if (waits_for === 'operator') return 'Our team is reviewing it. You don’t need to do anything.';
  if (network?.last_answer === 'no_answer')
    return 'The card network has given no answer yet. We ask it again by ourselves, and nothing happens twice.';
  if (waits_for === 'network') return 'The card network has accepted it and has not decided yet.';
  return 'It is in progress.';
}
