import type { KeyRing } from '../db/key-ring.ts';
import type { Orm } from '../db/orm.ts';
import type { IssuedCard } from '../domain/issued-card.ts';

/** What every command works with. */
export interface CommandContext {
  orm: Orm;
  ring: KeyRing;
}

/** What deciding an issuance takes beside the database. */
export interface IssuanceContext extends CommandContext {
  /** Whether live mode has a network; without one it can issue nothing. */
  liveNetworkConfigured: boolean;
  /** Test mode's network: arithmetic on the card's id, quick enough to stand in a transaction. */
  issueTestCard(cardId: string): Promise<IssuedCard>;
}
