import type { KeyRing } from '../crypto/key-ring.ts';
import type { Orm } from '../db/orm.ts';

/** What every command works with. */
export interface CommandContext {
  orm: Orm;
  ring: KeyRing;
}

/** What deciding a live issuance takes beside the database. */
export interface IssuanceContext extends CommandContext {
  /** Whether live mode has a network; without one it can issue nothing. */
  liveNetworkConfigured: boolean;
}
