import { Link } from '@tanstack/react-router';
import { formatDuration, formatTime } from '../format.ts';
import { readFirst, useAction, useOne } from '../reading.ts';
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

/** Lists are newest first, and what is due next may be at their end, so they are read on up to this many. */
const MAX_READ = 500;
const PAGE = { limit: 100 };

/** What the next advances make happen. */
function Due() {
  const { api, can } = useWorkbench();
  const authorizations = useOne(
    ['due', 'authorizations'],
    (options) => readFirst(api.authorizations.listAll({ ...PAGE, status: 'pending' }, options), MAX_READ),
    { isAllowed: can('cards:read') },
  );
  const retries = useOne(
    ['due', 'retries'],
    (options) => readFirst(api.events.list({ ...PAGE, delivery_status: 'retrying' }, options), MAX_READ),
    { isAllowed: can('events:read') },
  );
  const deposits = useOne(
    ['due', 'deposits'],
    (options) => readFirst(api.deposits.list(PAGE, options), MAX_READ),
    { isAllowed: can('balance:read') },
  );
  const lists = [authorizations, retries, deposits];
  const due = [
    ...(authorizations.data ?? []).map(({ id, expires_at, merchant }) => ({
      id,
      at: expires_at,
      what: (
        <Link to="/payments/$authorizationId" params={{ authorizationId: id }}>
          An authorization of {merchant.name ?? 'an unknown merchant'} expires
        </Link>
      ),
    })),
    ...(retries.data ?? []).map(({ id, type, deliveries }) => ({
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
    ...(deposits.data ?? [])
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
  const failed = lists.find(({ error }) => error !== null);
  const isCut = lists.some(({ data }) => data?.length === MAX_READ);
  return (
    <Panel title="Due next">
      {failed && <Problem error={failed.error} />}
      {due.length === 0 ? (
        <Note>Nothing is scheduled.</Note>
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
      {isCut && <Note>Of the newest {MAX_READ} of each kind. Something older may be due earlier.</Note>}
    </Panel>
  );
}
