import '@fontsource-variable/inter/wght.css';
import './ui/theme.css';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { openSession } from './session.ts';
import { SignIn } from './sign-in.tsx';
import { SignedIn } from './signed-in.tsx';

const opening = await openSession();
const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no root');
createRoot(root).render(
  <StrictMode>
    {opening.kind === 'open' ? <SignedIn session={opening.session} /> : <SignIn opening={opening} />}
  </StrictMode>,
);
