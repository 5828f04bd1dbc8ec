import { createContext, use } from 'react';
import type { WorkbenchScope } from '../client/generated/types.gen.ts';
import type { Api, Session } from './session.ts';

/** What every page has at hand. */
export interface Workbench {
  session: Session;
  api: Api;
  /** Whether the session has all of these scopes. What it may not do is not offered. */
  can(...scopes: WorkbenchScope[]): boolean;
  /** Says in a corner, and to a screen reader, what was done. */
  say(message: string): void;
}

export const WorkbenchContext = createContext<Workbench | null>(null);

export function useWorkbench(): Workbench {
  const workbench = use(WorkbenchContext);
  if (workbench === null) throw new Error('outside of the workbench');
  return workbench;
}
