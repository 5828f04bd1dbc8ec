import { useEffect, useState } from 'react';
import { exchange, type Opening, openSession, tokenOfLink } from './session.ts';
import css from './sign-in.module.css';
import { SignedIn } from './signed-in.tsx';
import icon from './ui/icon.svg';
import parts from './ui/parts.module.css';
import { Button, Note } from './ui/parts.tsx';

/** What is shown while no session is open: how to get a link, and whether a link may replace another account. */
export function SignIn({ opening: first }: { opening: Exclude<Opening, { kind: 'open' }> }) {
  const [opening, setOpening] = useState<Opening>(first);
  const [isBusy, setBusy] = useState(false);
  const open = async (token: string, replace = false) => {
    setBusy(true);
    setOpening(await exchange(token, replace));
    setBusy(false);
  };
  useEffect(() => {
    // A link that is pasted over an old one changes the fragment alone, which loads no page.
    const onHash = () => {
      if (tokenOfLink(location.href) !== null) void openSession().then(setOpening);
    };
    addEventListener('hashchange', onHash);
    return () => removeEventListener('hashchange', onHash);
  }, []);
  if (opening.kind === 'open') return <SignedIn session={opening.session} />;
  return (
    <main className={css.page}>
      <div className={css.box}>
        <img src={icon} alt="" />
        {opening.kind === 'replaces' ? (
          <>
            <h1>Open another account?</h1>
            <p>
              The workbench of <strong>{opening.open.account.name}</strong> is open in this browser, in{' '}
              {opening.open.mode} mode. This link belongs to another account. If you open it, the other
              session ends, in its tabs, too.
            </p>
            <div className={css.buttons}>
              <Button kind="primary" disabled={isBusy} onClick={() => void open(opening.token, true)}>
                Open the new account
              </Button>
              <a className={parts.button} href={`/workbench/${opening.open.mode}`}>
                Stay with {opening.open.account.name}
              </a>
            </div>
          </>
        ) : (
          <>
            <h1>
              {opening.mode === null ? 'Open the workbench' : `Open the workbench in ${opening.mode} mode`}
            </h1>
            {opening.problem !== null && (
              <p className={parts.problem} role="alert">
                {opening.problem}
              </p>
            )}
            <p>
              The workbench opens with a link, which works once and within 5 minutes. Your server makes one
              with <code>POST /v1/workbench-sessions</code>, and we can send you one. On a stack of your own
              machine:
            </p>
            <pre>npm run workbench</pre>
            <form
              onSubmit={(event) => {
                event.preventDefault();
                const link = String(new FormData(event.currentTarget).get('link'));
                const token = tokenOfLink(link);
                if (token !== null) void open(token);
                else
                  setOpening({
                    kind: 'closed',
                    mode: opening.mode,
                    problem: 'That isn’t a workbench link.',
                  });
              }}
            >
              <label>
                Link
                <input name="link" required autoComplete="off" placeholder="https://…/workbench/#…" />
              </label>
              <div className={css.buttons}>
                <Button type="submit" kind="primary" disabled={isBusy}>
                  Open
                </Button>
              </div>
            </form>
            <Note>
              <a href="/guide/workbench">What a session is</a>
            </Note>
          </>
        )}
      </div>
    </main>
  );
}
