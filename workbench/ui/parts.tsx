import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import { CardIssuingError } from '../../client/errors.ts';
import { formatChange, formatCode, formatMoney, formatTime } from '../format.ts';
import { Icon } from './icon.tsx';
import css from './parts.module.css';

/** The class names of a button, for links that look like one. */
export const buttonClass = (...kinds: ('primary' | 'danger' | 'destroy' | 'quiet' | 'small')[]): string =>
  [css.button, ...kinds.map((kind) => css[kind])].join(' ');

export function Button({
  kind,
  small = false,
  ...rest
}: React.ComponentProps<'button'> & { kind?: 'primary' | 'danger' | 'destroy' | 'quiet'; small?: boolean }) {
  return (
    <button
      type="button"
      {...rest}
      className={buttonClass(...(kind ? [kind] : []), ...(small ? (['small'] as const) : []))}
    />
  );
}

export function Money({ cents, change = false }: { cents: number; change?: boolean }) {
  return <>{change ? formatChange(cents) : formatMoney(cents)}</>;
}

/** A time of the API in the browser's zone, with the exact one as its title. */
export function Time({ at, none = '—' }: { at: string | null; none?: string }) {
  if (at === null) return <>{none}</>;
  return (
    <time dateTime={at} title={at}>
      {formatTime(at)}
    </time>
  );
}

type Tone = 'good' | 'wait' | 'bad' | 'off';

/** How each status of the API looks: a shape as well as a colour. */
const TONES: Record<string, Tone> = {
  ...tone('good', 'active', 'succeeded', 'settled', 'delivered', 'confirmed', 'credited', 'enabled', 'ready'),
  ...tone('good', 'completed', 'open', 'approved', 'purchase', 'refund'),
  ...tone(
    'wait',
    'funding_pending',
    'pending',
    'retrying',
    'confirming',
    'awaiting_payment',
    'found',
    'running',
  ),
  ...tone(
    'wait',
    'in_progress',
    'advancing',
    'unopened',
    'parked',
    'awaiting_review',
    'needs_review',
    'in_review',
  ),
  ...tone('bad', 'failed', 'declined', 'given_up', 'blocked', 'decline', 'failing'),
  ...tone(
    'off',
    'frozen',
    'closed',
    'reversed',
    'expired',
    'returned',
    'revoked',
    'ended',
    'disabled',
    'no_endpoint',
  ),
};

function tone(name: Tone, ...statuses: string[]): Record<string, Tone> {
  return Object.fromEntries(statuses.map((status) => [status, name]));
}

const SHAPES: Record<Tone, ReactNode> = {
  good: <path d="m2 6.5 3 3 5-7" />,
  wait: (
    <>
      <circle cx="6" cy="6" r="4.5" />
      <path d="M6 3.5V6l2 1" />
    </>
  ),
  bad: <path d="m2.5 2.5 7 7m0-7-7 7" />,
  off: <path d="M2 6h8" />,
};

export function Status({ of, label = formatCode(of) }: { of: string; label?: string }) {
  const look = TONES[of] ?? 'off';
  return (
    <span className={`${css.status} ${css[look]}`}>
      <svg viewBox="0 0 12 12" aria-hidden="true">
        {SHAPES[look]}
      </svg>
      {label}
    </span>
  );
}

export function Copy({ text, what }: { text: string; what: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return (
    <button
      type="button"
      className={css.copy}
      aria-label={isCopied ? `${what} copied` : `Copy ${what}`}
      title={isCopied ? 'Copied' : `Copy ${what}`}
      onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
    >
      <Icon name={isCopied ? 'check' : 'copy'} />
    </button>
  );
}

/** An id that can be copied. */
export function Id({ of, what = 'id' }: { of: string; what?: string }) {
  return (
    <span className={css.id}>
      <code>{of}</code>
      <Copy text={of} what={what} />
    </span>
  );
}

/** The id of something, which leads to its page if it has one. */
export function ResourceLink({ of }: { of: { type: string; id: string } | null }) {
  if (of === null) return 'Nothing';
  const { type, id } = of;
  const text = <code>{id}</code>;
  if (type === 'card')
    return (
      <Link to="/cards/$cardId" params={{ cardId: id }}>
        {text}
      </Link>
    );
  if (type === 'authorization')
    return (
      <Link to="/payments/$authorizationId" params={{ authorizationId: id }}>
        {text}
      </Link>
    );
  if (type === 'deposit')
    return (
      <Link to="/deposits/$depositId" params={{ depositId: id }}>
        {text}
      </Link>
    );
  return text;
}

/** The beginning of a page: what it is, and what can be done with it. */
export function PageHead({
  title,
  above,
  children,
}: {
  title: ReactNode;
  /** Where the page belongs, for the way back. */
  above?: ReactNode;
  children?: ReactNode;
}) {
  return (
    <div className={css.head}>
      <div>
        {above !== undefined && <p className={css.above}>{above}</p>}
        <h1 tabIndex={-1}>{title}</h1>
      </div>
      {children !== undefined && <div className={css.actions}>{children}</div>}
    </div>
  );
}

export function Panel({
  title,
  action,
  children,
}: {
  title: string;
  action?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className={css.panel} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {action}
      </header>
      {children}
    </section>
  );
}

export const Stack = ({ children }: { children: ReactNode }) => <div className={css.stack}>{children}</div>;
export const Two = ({ children }: { children: ReactNode }) => <div className={css.two}>{children}</div>;
export const Actions = ({ children }: { children: ReactNode }) => (
  <div className={css.actions}>{children}</div>
);
export const Note = ({ children }: { children: ReactNode }) => <p className={css.note}>{children}</p>;
export const Hidden = ({ children }: { children: ReactNode }) => (
  <span className={css.hidden}>{children}</span>
);

/** Names and values. Those without a value are left out. */
export function Facts({ of }: { of: [name: string, value: ReactNode][] }) {
  return (
    <dl className={css.facts}>
      {of.map(
        ([name, value]) =>
          value !== null && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** Large numbers with their names. */
export function Figures({ of }: { of: [name: string, value: ReactNode][] }) {
  return (
    <dl className={css.figures}>
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** What to do first where there is nothing yet. */
export function Empty({
  title,
  children,
  action,
}: {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className={css.empty}>
      <h3>{title}</h3>
      {children !== undefined && <p>{children}</p>}
      {action !== undefined && action !== null && <div>{action}</div>}
    </div>
  );
}

/** An error as the API says it, with the request to quote. */
export function Problem({ error }: { error: unknown }) {
  const refusal = error instanceof CardIssuingError ? error : null;
  // The client says what a program does next, and a person has a button.
  const isUnanswered = refusal?.status === null || refusal?.code === 'unexpected_response';
  const message =
    isUnanswered && refusal?.idempotencyKey != null
      ? 'The API did not answer, so this may have been done. Press the button again: nothing happens twice.'
      : error instanceof Error
        ? error.message
        : String(error);
  return (
    <div className={css.problem} role="alert">
      <p>{message}</p>
      {refusal !== null && refusal.issues.length > 1 && (
        <ul>
          {refusal.issues.map((issue) => (
            <li key={issue.path}>
              <code>{issue.path}</code>: {issue.message}
            </li>
          ))}
        </ul>
      )}
      {refusal !== null && (
        <p className={css.note}>
          <code>{refusal.code}</code>
          {refusal.requestId !== null && (
            <>
              {' · request '}
              <Id of={refusal.requestId} what="request id" />
            </>
          )}
        </p>
      )}
    </div>
  );
}

/** What a reading has: the error, nothing yet, or its content. Old content stays while a newer reading fails. */
export function Loaded<T>({
  reading,
  children,
}: {
  reading: { data: T | undefined; error: unknown; isPending: boolean };
  children: (data: T) => ReactNode;
}) {
  if (reading.data !== undefined) return <>{children(reading.data)}</>;
  if (reading.error) return <Problem error={reading.error} />;
  return <Loading />;
}

export const Loading = () => <p className={css.note}>Loading…</p>;

/** The ways through one page, each with its own address. */
export function Tabs({ label, of }: { label: string; of: { to: string; label: string }[] }) {
  return (
    <nav className={css.tabs} aria-label={label}>
      {of.map(({ to, label: name }) => (
        <Link
          key={to}
          to={to}
          activeOptions={{ exact: true, includeSearch: false }}
          activeProps={{ 'aria-current': 'page' }}
        >
          {name}
        </Link>
      ))}
    </nav>
  );
}

export const Json = ({ value, label }: { value: unknown; label: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard.
  <section className={css.json} aria-label={label} tabIndex={0}>
    <pre>{JSON.stringify(value, null, 2)}</pre>
  </section>
);
