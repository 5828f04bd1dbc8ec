import { sql } from 'kysely';
import { keyIsUsable } from '../accounts/api-keys.ts';
import { ApiError } from '../domain/api-error.ts';
import { isId } from '../domain/ids.ts';
import type { Mode, Tenant } from '../domain/mode.ts';
import { newId } from '../platform/crypto/new-id.ts';
import { newToken, tokenHashes } from '../platform/crypto/token.ts';
import type { Orm } from '../platform/db/orm.ts';
import { anyOf, autocommitStatement, readStatement, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { notRevealable, requireEnabled, selectCard } from './admit-reveal.ts';

/** How many links of an account and mode can wait to be opened (docs/partners/reveal-links.md). */
const MAX_UNOPENED = 100;

interface NewLink extends Tenant {
  cardId: string;
  keyId: string;
  frameOrigins: string[];
  theme: 'light' | 'dark' | null;
}

interface MadeLink {
  id: string;
  expiresAt: string;
  /** Opens it, once. */
  token: string;
}

/**
 * Makes a link that shows the number of a card that was issued. What a reveal needs is checked when it is
 * opened.
 * @throws ApiError `secure_details_disabled`, `card_not_found`, `invalid_state`, `limit_exceeded`
 */
export function createRevealLink({ orm, ring }: CommandContext, link: NewLink): Promise<MadeLink> {
  const { partnerId, mode, cardId } = link;
  return transaction(orm, async (tx) => {
    await requireEnabled(tx, partnerId);
    const [card] = isId('card', cardId) ? await selectCard(tx, { partnerId, mode }, { cardId }) : [];
    if (card === undefined) throw new ApiError('card_not_found');
    // A card whose creation is refused is deleted, which its link would prevent.
    if (card.status === 'funding_pending' || card.status === 'failed') throw notRevealable(card.status);
    const [count] = await countUnopened(tx, { partnerId, mode, max: MAX_UNOPENED });
    if ((count?.unopened ?? 0) >= MAX_UNOPENED)
      throw new ApiError('limit_exceeded', {
        message: `This account has ${MAX_UNOPENED} reveal links in this mode that nobody has opened. They expire after 5 minutes.`,
      });
    const token = newToken();
    const [tokenHash] = tokenHashes(ring, 'reveal-link', token);
    const id = newId('rvl');
    const [made] = await insert(tx, { ...link, id, tokenHash });
    if (made === undefined) throw new Error('an insert returns its row');
    return { id, expiresAt: made.expires_at, token };
  });
}

const countUnopened = writeStatement(
  (_, { partnerId, mode, max }: Tenant & { max: number }) => sql<{ unopened: number }>`
  SELECT count(*)::int AS unopened FROM (
    SELECT FROM reveal_link WHERE partner_id = ${partnerId} AND mode = ${mode} AND opened_at IS NULL AND expires_at > now()
    LIMIT ${max}) unopened`,
);

const insert = writeStatement(
  (_, link: NewLink & { id: string; tokenHash: Buffer }) => sql<{ expires_at: string }>`
  INSERT INTO reveal_link (id, partner_id, mode, card_id, api_key_id, token_hash, frame_origins, theme, expires_at)
  VALUES (${link.id}, ${link.partnerId}, ${link.mode}, ${link.cardId}, ${link.keyId}, ${link.tokenHash},
    ${link.frameOrigins}, ${link.theme}, now() + interval '5 minutes')
  RETURNING expires_at`,
);

/** How a link's page looks, and whose pages may embed it. */
export interface LinkPage {
  frame_origins: string[];
  theme: 'light' | 'dark' | null;
}

/** Undefined if there is no such link. */
export async function readLinkPage(orm: Orm, linkId: string): Promise<LinkPage | undefined> {
  const [page] = isId('rvl', linkId) ? await selectPage(orm.em.fork(), { linkId }) : [];
  return page;
}

const selectPage = readStatement(
  (_, { linkId }: { linkId: string }) => sql<LinkPage>`
  SELECT frame_origins, theme FROM reveal_link WHERE id = ${linkId}`,
  { acrossTenants: 'key' },
);

/** What a link's token opens. */
export interface FoundLink extends Tenant {
  cardId: string;
  keyId: string;
}

/** @throws ApiError `reveal_link_used` if the token is not the link's, or its key has ended; `account_suspended` */
export async function findRevealLink(
  { orm, ring }: CommandContext,
  linkId: string,
  token: string,
): Promise<FoundLink> {
  const hashes = tokenHashes(ring, 'reveal-link', token);
  const [link] = isId('rvl', linkId) ? await selectLink(orm.em.fork(), { linkId, hashes }) : [];
  if (link === undefined) throw new ApiError('reveal_link_used');
  if (link.is_suspended) throw new ApiError('account_suspended');
  return { partnerId: link.partner_id, mode: link.mode, cardId: link.card_id, keyId: link.api_key_id };
}

interface LinkRow {
  partner_id: string;
  mode: Mode;
  card_id: string;
  api_key_id: string;
  is_suspended: boolean;
}

const selectLink = readStatement(
  (_, { linkId, hashes }: { linkId: string; hashes: Buffer[] }) => sql<LinkRow>`
  SELECT l.partner_id, l.mode, l.card_id, l.api_key_id, p.suspended_at IS NOT NULL AS is_suspended
  FROM reveal_link l JOIN api_key k ON k.id = l.api_key_id JOIN partner p ON p.id = l.partner_id
  WHERE l.id = ${linkId} AND l.token_hash = ${anyOf(hashes)} AND ${keyIsUsable('k')}`,
  { acrossTenants: 'key' },
);

/** Gives a link back that the card network did not answer for, so that it can be opened until it expires. */
export async function giveLinkBack(orm: Orm, { partnerId, mode }: Tenant, linkId: string): Promise<void> {
  await giveBack(orm, { partnerId, mode, linkId });
}

const giveBack = autocommitStatement(
  (_, { partnerId, mode, linkId }: Tenant & { linkId: string }) => sql`
  UPDATE reveal_link SET opened_at = NULL WHERE id = ${linkId} AND partner_id = ${partnerId} AND mode = ${mode}`,
);

/** Deletes links that expired a day ago or longer. @returns how many, at most `limit` */
export async function pruneRevealLinks(orm: Orm, limit: number): Promise<number> {
  return (await prune(orm, { limit })).length;
}

const prune = autocommitStatement(
  (_, { limit }: { limit: number }) => sql<{ id: string }>`
    DELETE FROM reveal_link WHERE id IN (
      SELECT id FROM reveal_link WHERE expires_at < now() - interval '1 day' LIMIT ${limit})
    RETURNING id`,
  { acrossTenants: 'queue' },
);
