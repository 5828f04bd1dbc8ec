import type { KeyRing } from '../platform/crypto/key-ring.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { Transactor } from '../platform/db/sql.ts';

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
