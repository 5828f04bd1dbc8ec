import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import type { WebhookEndpoint } from '../../client/generated/types.gen.ts';
import { useAction, useList, useOne } from '../reading.ts';
import {
  Button,
  Empty,
  Facts,
  Id,
  Loaded,
  Note,
  PageHead,
  Panel,
  Stack,
  Status,
  Time,
} from '../ui/parts.tsx';
import { SecretDialog } from '../ui/secret-dialog.tsx';
import { ListTable, useFilters } from '../ui/table.tsx';
import { useWorkbench } from '../workbench.ts';
import { DeleteDialog, EndpointDialog, ReplayDialog, RotateDialog } from './endpoint-dialogs.tsx';
import css from './endpoints.module.css';

const isFailing = ({ status, consecutive_failures }: WebhookEndpoint) =>
  status === 'enabled' && consecutive_failures > 0;

const Health = ({ endpoint }: { endpoint: WebhookEndpoint }) =>
  isFailing(endpoint) ? (
    <Status of="failing" label={`Failing, ${endpoint.consecutive_failures} in a row`} />
  ) : (
    <Status of={endpoint.status} />
  );

export function Endpoints() {
  const { api, can } = useWorkbench();
  const [isAdding, setAdding] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const list = useList(['endpoints'], (query, options) => api.webhookEndpoints.list(query, options));
  const add = can('webhooks:write') ? (
    <Button kind="primary" data-new onClick={() => setAdding(true)}>
      Add an endpoint
    </Button>
  ) : null;
  return (
    <>
      <PageHead title="Endpoints">{add}</PageHead>
      <ListTable
        label="Endpoints"
        list={list}
        empty={
          <Empty title="No endpoint yet" action={add}>
            An endpoint is an address of yours that we send events to.
          </Empty>
        }
        columns={[
          {
            head: 'URL',
            cell: ({ id, url }) => (
              <Link to="/endpoints/$endpointId" params={{ endpointId: id }}>
                {url}
              </Link>
            ),
          },
          { head: 'Health', cell: (endpoint) => <Health endpoint={endpoint} /> },
          { head: 'Types', isWide: true, cell: ({ event_types }) => event_types?.length ?? 'All' },
          {
            head: 'Last success',
            isWide: true,
            cell: ({ last_success_at }) => <Time at={last_success_at} none="Never" />,
          },
        ]}
      />
      {isAdding && (
        <EndpointDialog
          onClose={() => setAdding(false)}
          onAdded={(endpoint) => {
            setAdding(false);
            setSecret(endpoint.secret ?? null);
          }}
        />
      )}
      {secret !== null && (
        <SecretDialog title="The signing secret" secret={secret} onClose={() => setSecret(null)} />
      )}
    </>
  );
}

export function Endpoint() {
  const { endpointId } = useParams({ from: '/endpoints/$endpointId' });
  const { api } = useWorkbench();
  const endpoint = useOne(['endpoint', endpointId], (options) =>
    api.webhookEndpoints.get(endpointId, options),
  );
  return <Loaded reading={endpoint}>{(data) => <OneEndpoint endpoint={data} />}</Loaded>;
}

function OneEndpoint({ endpoint }: { endpoint: WebhookEndpoint }) {
  const { api, can, say } = useWorkbench();
  const [dialog, setDialog] = useState<'edit' | 'rotate' | 'replay' | 'delete' | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const { replay: replayId } = useFilters();
  const navigate = useNavigate();
  const close = () => setDialog(null);
  const test = useAction(
    (_: Record<string, never>) => api.webhookEndpoints.test(endpoint.id),
    () => say('A ping is sent.'),
  );
  const { last_failure } = endpoint;
  return (
    <>
      <PageHead above={<Link to="/endpoints">Endpoints</Link>} title={endpoint.url}>
        {can('webhooks:write') && (
          <>
            <Button data-new disabled={test.isPending} onClick={() => test.mutate({})}>
              Send a ping
            </Button>
            <Button onClick={() => setDialog('replay')}>Replay</Button>
            <Button onClick={() => setDialog('edit')}>Change</Button>
            <Button onClick={() => setDialog('rotate')}>Rotate the secret</Button>
            <Button kind="danger" onClick={() => setDialog('delete')}>
              Delete
            </Button>
          </>
        )}
      </PageHead>
      <Stack>
        <Panel title="Health" action={<Health endpoint={endpoint} />}>
          <Attempts endpointId={endpoint.id} />
          <Facts
            of={[
              ['Disabled because', endpoint.disabled_reason],
              ['Last success', <Time key="s" at={endpoint.last_success_at} none="Never" />],
              ['Failing since', endpoint.failing_since && <Time key="f" at={endpoint.failing_since} />],
              [
                'Last failure',
                last_failure && (
                  <span key="l">
                    <code>{last_failure.error}</code> <Time at={last_failure.at} />
                  </span>
                ),
              ],
            ]}
          />
        </Panel>
        {replayId !== undefined && <Replay endpointId={endpoint.id} replayId={replayId} />}
        <Panel title="About">
          <Facts
            of={[
              ['Id', <Id key="id" of={endpoint.id} what="endpoint id" />],
              ['Description', endpoint.description],
              ['Types', endpoint.event_types?.join(', ') ?? 'All, future ones included'],
              ['Standard Webhooks', endpoint.standard_webhooks ? 'Its headers are sent, too' : 'No'],
              [
                'Previous secret',
                endpoint.previous_secret_expires_at && (
                  <span key="p">
                    signs until <Time at={endpoint.previous_secret_expires_at} />
                  </span>
                ),
              ],
              ['Created', <Time key="c" at={endpoint.created} />],
            ]}
          />
        </Panel>
      </Stack>
      {dialog === 'edit' && <EndpointDialog endpoint={endpoint} onClose={close} />}
      {dialog === 'replay' && (
        <ReplayDialog
          endpointId={endpoint.id}
          onClose={close}
          onBegun={(id) => {
            // In the address, so that a reload still shows how far it is.
            void navigate({ to: '.', search: { replay: id }, replace: true });
            close();
          }}
        />
      )}
      {dialog === 'rotate' && (
        <RotateDialog
          id={endpoint.id}
          onClose={close}
          onRotated={(rotated) => {
            setSecret(rotated.secret ?? null);
            close();
          }}
        />
      )}
      {dialog === 'delete' && <DeleteDialog id={endpoint.id} onClose={close} />}
      {secret !== null && (
        <SecretDialog title="The signing secret" secret={secret} onClose={() => setSecret(null)} />
      )}
    </>
  );
}

/** How the attempts of the newest events went, the oldest first. */
function Attempts({ endpointId }: { endpointId: string }) {
  const { api } = useWorkbench();
  const events = useList(['events', 'attempts'], (query, options) => api.events.list(query, options), {
    pageSize: 100,
  });
  const attempts = (events.rows ?? [])
    .flatMap(({ id, type, deliveries }) =>
      deliveries
        .filter(({ endpoint_id }) => endpoint_id === endpointId)
        .flatMap(({ attempts }) => attempts.map((attempt) => ({ ...attempt, eventId: id, type }))),
    )
    .sort((a, b) => a.started_at.localeCompare(b.started_at))
    .slice(-80);
  if (attempts.length === 0) return <Note>No attempt at the newest events yet.</Note>;
  return (
    <ol className={css.attempts} aria-label="The newest attempts, the oldest first">
      {attempts.map(({ eventId, number, type, status, error, started_at }) => {
        const text = `${type}: ${status}${error === null ? '' : ` (${error})`} at ${started_at}`;
        return (
          <li key={`${eventId}-${number}`}>
            <Link
              to="/events/$eventId"
              params={{ eventId }}
              data-status={status}
              aria-label={text}
              title={text}
            />
          </li>
        );
      })}
    </ol>
  );
}

function Replay({ endpointId, replayId }: { endpointId: string; replayId: string }) {
  const { api } = useWorkbench();
  const replay = useOne(
    ['replay', replayId],
    (options) => api.webhookEndpoints.getReplay(endpointId, replayId, options),
    { refreshMs: 2_000 },
  );
  return (
    <Panel title="Replay" action={replay.data && <Status of={replay.data.status} />}>
      <Loaded reading={replay}>
        {({ sent, matched }) => (
          <>
            <progress
              className={css.progress}
              aria-label="Events sent"
              max={Math.max(1, matched)}
              value={matched === 0 ? 1 : sent}
            />
            <Note>
              {sent.toLocaleString('en-US')} of {matched.toLocaleString('en-US')} events are sent.
            </Note>
          </>
        )}
      </Loaded>
    </Panel>
  );
}
