import type { KeyRing } from '../crypto/key-ring.ts';
import type { Orm } from '../db/orm.ts';

/** The context of every command. */
export interface CommandContext {
  orm: Orm;
  ring: KeyRing;
}
