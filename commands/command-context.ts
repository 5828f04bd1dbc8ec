import type { KeyRing } from '../crypto/key-ring.ts';
import type { Orm } from '../db/orm.ts';

/** What every command works with. */
export interface CommandContext {
  orm: Orm;
  ring: KeyRing;
}
