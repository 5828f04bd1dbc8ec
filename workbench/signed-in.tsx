import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { CardIssuingError } from '../client/errors.ts';
import { openRouter } from './router.tsx';
import { Api, type Session } from './session.ts';
import { Ended, type Ending, Said, Unreachable } from './shell.tsx';
import { type Workbench, WorkbenchContext } from './workbench.ts';

/** Errors after which this tab can do nothing more (docs/partners/workbench.md, "What a session is"). */
const ENDINGS: Record<string, Ending> = {
  invalid_api_key: 'over',
  account_suspended: 'refused',
  ip_not_allowed: 'refused',
  cross_origin: 'refused',
  workbench_session_mismatch: 'replaced',
};

/** The workbench of one session. It stays with it: a tab never shows another account or mode. */
export function SignedIn({ session }: { session: Session }) {
  const [ending, setEnding] = useState<{ kind: Ending; message: string } | null>(null);
  const [said, setSaid] = useState('');
  const [isUnreachable, setUnreachable] = useState(false);
  const { queries, router, workbench } = useMemo(() => {
    const onError = (error: Error) => {
      const kind = error instanceof CardIssuingError ? ENDINGS[error.code] : undefined;
      if (kind !== undefined) setEnding({ kind, message: error.message });
      setUnreachable(error instanceof CardIssuingError && (error.status ?? 500) >= 500);
    };
    const onSuccess = () => setUnreachable(false);
    const queries = new QueryClient({
      queryCache: new QueryCache({ onError, onSuccess }),
      mutationCache: new MutationCache({ onError }),
      // The client tries again by itself. Nothing is kept until the browser is online: it would be done late, and
      // perhaps twice.
      defaultOptions: {
        queries: { retry: false, staleTime: 1_000, networkMode: 'always' },
        mutations: { networkMode: 'always' },
      },
    });
    const workbench: Workbench = {
      session,
      api: new Api(session),
      can: (...scopes) => scopes.every((scope) => session.scopes.includes(scope)),
      say: setSaid,
    };
    return { queries, router: openRouter(session.mode), workbench };
  }, [session]);
  if (ending !== null) return <Ended session={session} {...ending} />;
  return (
    <WorkbenchContext value={workbench}>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
        {isUnreachable && <Unreachable />}
        <Said message={said} onOver={() => setSaid('')} />
      </QueryClientProvider>
    </WorkbenchContext>
  );
}
