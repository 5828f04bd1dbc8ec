import { Link } from '@tanstack/react-router';
import { formatDuration, formatTime } from '../format.ts';
import { useAction, useList, useOne } from '../reading.ts';
import { FieldRow, Form, SelectField, TextField } from '../ui/form.tsx';
import {
  Actions,
  Button,
  Figures,
  Loaded,
  Note,
  PageHead,
  Panel,
  Problem,
  Stack,
  Status,
  Time,
} from '../ui/parts.tsx';
import { Table } from '../ui/table.tsx';
import { useWorkbench } from '../workbench.ts';

const PRESETS = [
  ['An hour', 3_600],
  ['A day', 86_400],
  ['A week', 604_800],
  ['30 days', 2_592_000],
] as const;
const UNITS = [
  ['60', 'minutes'],
  ['3600', 'hours'],
  ['86400', 'days'],
] as const;

export function Clock() {
  const { api, say } = useWorkbench();
  const clock = useOne(['clock'], (options) => api.testHelpers.getClock(options), { refreshMs: 1_000 });
  const advance = useAction(
    (body: { seconds: number }, options) => api.testHelpers.advanceClock(body, options),
    ({ now }) => say(`The account’s time is ${formatTime(now)}.`),
  );
  return (
    <>
      <PageHead title="Test clock" />
      <Stack>
        <Panel title="Now" action={clock.data && <Status of={clock.data.status} />}>
          <Loaded reading={clock}>
            {({ now, offset_seconds }) => (
              <Figures
                of={[
                  ['The account’s time', <Time key="now" at={now} />],
                  [
                    'Ahead of real time by',
                    offset_seconds === 0 ? 'Nothing' : formatDuration(offset_seconds),
                  ],
                ]}
              />
            )}
          </Loaded>
        </Panel>
        <Panel title="Advance">
          <Actions>
            {PRESETS.map(([label, seconds]) => (
              <Button key={label} disabled={advance.isPending} onClick={() => advance.mutate({ seconds })}>
                {label}
              </Button>
            ))}
          </Actions>
          <Form
            action={advance}
            submit="Advance"
            toInput={(typed) => ({ seconds: Number(typed.text('count') ?? 0) * Number(typed.text('unit')) })}
          >
            <FieldRow>
              <TextField name="count" label="By" inputMode="numeric" defaultValue="1" />
              <SelectField name="unit" label="Unit" options={UNITS} defaultValue="3600" />
            </FieldRow>
          </Form>
          <Note>
            It never goes back. What becomes due begins within 10 seconds: webhook retries, expiring
            authorizations, test deposits.
          </Note>
        </Panel>
        <Due />
      </Stack>
    </>
  );
}

/** What the next advances make happen, of the newest things that wait. */
function Due() {
  const { api, can } = useWorkbench();
  const authorizations = useList(
    ['due', 'authorizations'],
    (query, options) => api.authorizations.listAll({ ...query, status: 'pending' }, options),
    { isAllowed: can('cards:read') },
  );
  const retries = useList(
    ['due', 'retries'],
    (query, options) => api.events.list({ ...query, delivery_status: 'retrying' }, options),
    { isAllowed: can('events:read') },
  );
  const deposits = useList(['due', 'deposits'], (query, options) => api.deposits.list(query, options), {
    isAllowed: can('balance:read'),
  });
  const due = [
    ...(authorizations.rows ?? []).map(({ id, expires_at, merchant }) => ({
      id,
      at: expires_at,
      what: (
        <Link to="/payments/$authorizationId" params={{ authorizationId: id }}>
          An authorization of {merchant.name ?? 'an unknown merchant'} expires
        </Link>
      ),
    })),
    ...(retries.rows ?? []).map(({ id, type, deliveries }) => ({
      id,
      at:
        deliveries
          .map(({ next_attempt_at }) => next_attempt_at)
          .filter((at) => at !== null)
          .sort()[0] ?? null,
      what: (
        <Link to="/events/$eventId" params={{ eventId: id }}>
          <code>{type}</code> is sent again
        </Link>
      ),
    })),
    ...(deposits.rows ?? [])
      .filter(({ status }) => status === 'awaiting_payment')
      .map(({ id, expires_at }) => ({
        id,
        at: expires_at,
        what: (
          <Link to="/deposits/$depositId" params={{ depositId: id }}>
            A deposit expires
          </Link>
        ),
      })),
  ]
    .filter((one): one is typeof one & { at: string } => one.at !== null)
    .sort((a, b) => a.at.localeCompare(b.at))
    .slice(0, 20);
  const failed = [authorizations, retries, deposits].find(({ error }) => error !== null);
  return (
    <Panel title="Due next">
      {failed && <Problem error={failed.error} />}
      {due.length === 0 ? (
        <Note>Nothing waits for the clock.</Note>
      ) : (
        <Table
          label="Due next"
          rows={due}
          columns={[
            { head: 'What', cell: ({ what }) => what },
            { head: 'When (account’s time)', cell: ({ at }) => <Time at={at} /> },
          ]}
        />
      )}
    </Panel>
  );
}
