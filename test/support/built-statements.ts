import { subscribe } from 'node:diagnostics_channel';
import type { BuiltStatement } from '../../platform/db/sql.ts';

/** Every statement of the modules that this process has loaded. It listens from before the first of them (test/setup.ts). */
export const BUILT_STATEMENTS: BuiltStatement[] = [];

subscribe('card-issuing:statements', (built) => {
  BUILT_STATEMENTS.push(built as BuiltStatement);
});
