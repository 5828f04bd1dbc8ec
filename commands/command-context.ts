import type { KeyRing } from '../crypto/key-ring.ts';
import type { Orm } from '../db/orm.ts';
import type { Transactor } from '../db/sql.ts';

/** The context of every command. */
export interface CommandContext {
  orm: Orm;
  ring: KeyRing;
}

/** A command's open transaction, with the ring that seals what it stores. */
export interface OpenCommand {
  tx: Transactor;
  ring: KeyRing;
}
