import { useMutation } from '@tanstack/react-query';
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import type { WorkbenchScope } from '../client/generated/types.gen.ts';
import { formatDuration } from './format.ts';
import { type Session, signOut } from './session.ts';
import css from './shell.module.css';
import { useSecondsAhead } from './test-clock.ts';
import { Dialog } from './ui/form.tsx';
import icon from './ui/icon.svg';
import { Icon, type IconName } from './ui/icon.tsx';
import { Button, Problem, Time } from './ui/parts.tsx';
import { useWorkbench } from './workbench.ts';

interface Place {
  to:
    | '/'
    | '/cards'
    | '/payments'
    | '/balance'
    | '/deposits'
    | '/events'
    | '/endpoints'
    | '/keys'
    | '/requests'
    | '/clock';
  label: string;
  icon: IconName;
  /** Pressed after `g`. */
  key: string;
  scopes: WorkbenchScope[];
  isTestOnly?: boolean;
}

const PLACES: Place[] = [
  { to: '/', label: 'Home', icon: 'home', key: 'h', scopes: [] },
  { to: '/cards', label: 'Cards', icon: 'cards', key: 'c', scopes: ['cards:read'] },
  { to: '/payments', label: 'Payments', icon: 'payments', key: 'p', scopes: ['cards:read'] },
  { to: '/balance', label: 'Balance', icon: 'balance', key: 'b', scopes: ['balance:read'] },
  { to: '/deposits', label: 'Deposits', icon: 'deposits', key: 'd', scopes: ['balance:read'] },
  { to: '/events', label: 'Events', icon: 'events', key: 'e', scopes: ['events:read'] },
  { to: '/endpoints', label: 'Endpoints', icon: 'endpoints', key: 'w', scopes: ['events:read'] },
  { to: '/keys', label: 'Keys', icon: 'keys', key: 'k', scopes: ['api_keys:write'] },
  { to: '/requests', label: 'Requests', icon: 'requests', key: 'r', scopes: ['requests:read'] },
  { to: '/clock', label: 'Test clock', icon: 'clock', key: 't', scopes: ['test:write'], isTestOnly: true },
];

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** What stands around every page: where one is, in which mode, and the ways to the other pages. */
export function Shell() {
  const { session, can } = useWorkbench();
  const { mode, account, expires_at } = session;
  const places = PLACES.filter((place) => can(...place.scopes) && !(place.isTestOnly && mode === 'live'));
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const place = PLACES.find(({ to }) => to !== '/' && path.startsWith(to)) ?? PLACES[0];
  const leaving = useMutation({
    mutationFn: () => signOut(session),
    onSuccess: () => location.assign(`/workbench/${mode}`),
  });
  useShortcuts(places, () => setHelpOpen(true));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes once its way was taken.
  useEffect(() => setMenuOpen(false), [path]);
  useEffect(() => {
    document.title = `${place?.label} · ${account.name}${mode === 'test' ? ' · test mode' : ''}`;
  }, [place, account.name, mode]);
  return (
    <>
      <a className={css.skip} href="#content">
        Skip to the page
      </a>
      <ModeStrip />
      <div className={css.bar}>
        <span>{place?.label}</span>
        <Button
          small
          aria-expanded={isMenuOpen}
          aria-controls="places"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          <Icon name="menu" /> Menu
        </Button>
      </div>
      <div className={css.shell}>
        <nav id="places" className={css.side} data-open={isMenuOpen} aria-label="Pages">
          <div className={css.who}>
            <img src={icon} alt="" />
            <div>
              <strong title={account.name}>{account.name}</strong>
            </div>
          </div>
          <ul>
            {places.map(({ to, label, icon: name }) => (
              <li key={to}>
                <Link
                  to={to}
                  activeOptions={{ exact: to === '/', includeSearch: false }}
                  activeProps={{ 'aria-current': 'page' }}
                >
                  <Icon name={name} /> {label}
                </Link>
              </li>
            ))}
          </ul>
          <div className={css.foot}>
            <span>Times are in {zone}.</span>
            <span>
              This session ends <Time at={expires_at} />.
            </span>
            <button type="button" onClick={() => setHelpOpen(true)}>
              Keyboard shortcuts
            </button>
            <a href="/docs">API reference</a>
            <button type="button" disabled={leaving.isPending} onClick={() => leaving.mutate()}>
              Sign out
            </button>
            {leaving.error && <Problem error={leaving.error} />}
          </div>
        </nav>
        <main id="content" className={css.main} tabIndex={-1}>
          <Outlet />
        </main>
      </div>
      {isHelpOpen && <Shortcuts places={places} onClose={() => setHelpOpen(false)} />}
    </>
  );
}

/** Nobody should take pretend money for real money, or the account's time for real time. */
function ModeStrip() {
  const { session } = useWorkbench();
  const isTest = session.mode === 'test';
  const ahead = useSecondsAhead();
  return (
    <div className={`${css.mode} ${isTest ? css.test : css.live}`}>
      <strong>{isTest ? 'Test mode' : 'Live mode'}</strong>
      <span>{isTest ? 'Nothing here is real money.' : 'This is real money.'}</span>
      {ahead > 0 && (
        <span>
          The account&rsquo;s clock is <Link to="/clock">{formatDuration(ahead)} ahead</Link> of real time.
        </span>
      )}
      <a href={`/workbench/${isTest ? 'live' : 'test'}`}>{isTest ? 'Live mode' : 'Test mode'} →</a>
    </div>
  );
}

/** `?` shows the shortcuts, `g` and a letter goes to a page, `/` to the filters, `n` to the page's first action. */
function useShortcuts(places: Place[], onHelp: () => void): void {
  const navigate = useNavigate();
  const wasG = useRef(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { target, key } = event;
      const isTyping =
        target instanceof HTMLElement && target.closest('input, select, textarea, dialog[open]') !== null;
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      const place = wasG.current ? places.find((one) => one.key === key) : undefined;
      wasG.current = key === 'g';
      if (place !== undefined) void navigate({ to: place.to });
      else if (key === '?') onHelp();
      else if (key === '/') focus(event, 'search input, search select');
      else if (key === 'n') focus(event, '[data-new]')?.click();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [places, onHelp, navigate]);
}

function focus(event: KeyboardEvent, selector: string): HTMLElement | null {
  const found = document.querySelector<HTMLElement>(selector);
  if (found !== null) event.preventDefault();
  found?.focus();
  return found;
}

function Shortcuts({ places, onClose }: { places: Place[]; onClose: () => void }) {
  const keys: [string[], string][] = [
    [['?'], 'These shortcuts'],
    [['/'], 'Filters of the list'],
    [['n'], 'The page’s first action'],
    ...places.map(({ key, label }): [string[], string] => [['g', key], label]),
  ];
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className={css.keys}>
        {keys.map(([pressed, what]) => (
          <div key={what}>
            <dt>
              {pressed.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

/** Says in a corner what was done, and is silent after a while. */
export function Said({ message, onOver }: { message: string; onOver: () => void }) {
  useEffect(() => {
    if (message === '') return;
    const timer = setTimeout(onOver, 5_000);
    return () => clearTimeout(timer);
  }, [message, onOver]);
  return (
    <div className={css.said} role="status">
      {message}
    </div>
  );
}

/** What is on the screen stays, and is read again until the API answers. */
export const Unreachable = () => (
  <div className={css.unreachable} role="alert">
    The API does not answer. What you see may be old. The page keeps trying.
  </div>
);

/** `refused`: the API says why. `over`: it can't, as there is no session any more. */
export type Ending = 'over' | 'refused' | 'replaced';

/** What is left of a tab whose session is over. */
export function Ended({ session, kind, message }: { session: Session; kind: Ending; message: string }) {
  return (
    <main className={css.ended}>
      <h1>{kind === 'replaced' ? 'Another session is open in this browser' : 'This session has ended'}</h1>
      <p role="alert">
        {kind === 'replaced'
          ? `This tab showed ${session.account.name} in ${session.mode} mode. This tab is inactive, so that you can’t change the wrong account.`
          : kind === 'over'
            ? 'It expired, it or its API key was ended, or you signed out in another tab. Ask for a new link.'
            : message}
      </p>
      <a href={`/workbench/${session.mode}`}>
        {kind === 'replaced' ? 'Show the session that is open' : 'Open the workbench again'}
      </a>
    </main>
  );
}
