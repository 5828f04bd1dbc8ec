import { z } from 'zod';
import type { OwnSite } from '../api/http/own-site.ts';
import { declare, resource } from '../api/http/route.ts';
import { ObjectType } from '../domain/fields.ts';
import { isoTime } from '../domain/iso-time.ts';
import { Mode } from '../domain/mode.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { REVEAL_LINK } from './examples.ts';
import { createRevealLink } from './reveal-links.ts';
import type { RevealDependencies } from './secure-details-routes.ts';

const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const PORT = '[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]';
/** As a policy names it: nothing in it can end the directive or begin another. */
const HTTPS_ORIGIN = new RegExp(`^https://${LABEL}(?:\\.${LABEL})*(?::(?:${PORT}))?$`);

const RevealLinkRequest = z
  .strictObject({
    frame_origins: z
      .array(
        z
          .string({ error: 'must be a string' })
          .max(300, 'must be at most 300 characters long')
          .regex(HTTPS_ORIGIN, 'must be an https origin, such as https://app.example.com'),
      )
      .max(5, 'must have at most 5 origins')
      .default([])
      .describe('Up to 5 https origins whose pages may embed the link in a frame. Default: none.'),
    theme: z
      .enum(['light', 'dark'])
      .optional()
      .describe('How the page looks. Default: as the browser prefers.'),
  })
  .meta({ id: 'CreateRevealLinkRequest', description: 'The link to make.' });

/** A link that shows a card's number once (docs/partners/reveal-links.md). */
const RevealLinkResource = z
  .object({
    id: z.string().describe('Prefix `rvl_`.'),
    object: ObjectType('reveal_link'),
    card_id: z.string().describe("The card's id."),
    url: z.string().describe("Shows the card's number, CVV and expiry, once. Treat it as the card's number."),
    expires_at: z.iso.datetime().describe('Until when it can be opened, in real time.'),
    mode: Mode,
  })
  .meta({ id: 'RevealLink', description: "A link that shows a card's number, CVV and expiry once." });

const createLink = declare({
  method: 'post',
  path: '/cards/:cardId/reveal-links',
  scope: 'secure_details:read',
  operationId: 'cards.createRevealLink',
  summary: 'Create a reveal link',
  description:
    "Makes a link to a page of ours that shows a card's number, CVV and expiry to whoever opens it, once and within 5 minutes, so that they " +
    'never reach your servers. Opening it counts as a reveal. An Idempotency-Key is ignored: if the response is lost, make another link.',
  body: RevealLinkRequest,
  bodyIsOptional: true,
  responses: { 201: RevealLinkResource },
  examples: { body: { frame_origins: ['https://app.example.com'], theme: 'light' }, 201: REVEAL_LINK },
  errors: ['secure_details_disabled', 'card_not_found', 'invalid_state', 'limit_exceeded'],
});

export interface RevealLinkDependencies extends RevealDependencies {
  ring: KeyRing;
  site: OwnSite;
}

export const revealLinks = resource({ createLink }, (dependencies: RevealLinkDependencies) => ({
  async createLink({ caller, params: { cardId = '' }, body }) {
    const { partnerId, mode, keyId } = caller;
    const { frame_origins: frameOrigins, theme = null } = body;
    const link = { partnerId, mode, keyId, cardId, frameOrigins, theme };
    const { id, expiresAt, token } = await createRevealLink(dependencies, link);
    // No browser sends what is in the fragment, so no log has it.
    const url = `${dependencies.site.origin}/reveal/${id}#${token}`;
    return {
      status: 201,
      body: { id, object: 'reveal_link', card_id: cardId, url, expires_at: isoTime(expiresAt), mode },
    };
  },
}));
