-- Up Migration

-- Issuances and top-ups that have ended, about which the network may still say something else: those an operator decided, and
-- those that a callback came for afterwards. A worker looks them up. The id is the card's or the top-up's, the network's token.
CREATE TABLE late_answer (
  id text COLLATE "C" PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('card', 'topup')),
  -- Known if an operator decided it, even if its row was deleted with a refusal. The rest is a top-up's.
  partner_id text,
  card_id text COLLATE "C",
  amount_cents bigint,
  fees jsonb,
  look_up_after timestamptz NOT NULL DEFAULT now(),
  look_ups integer NOT NULL DEFAULT 0,
  -- What the network said that contradicts our record, since when, and its id of a card.
  said text CHECK (said IN ('yes', 'no')),
  network_card_id text,
  contradicts_since timestamptz,
  -- What an operator decided about that: { outcome: booked | dismissed, refused? }.
  decision jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((said IS NULL) = (contradicts_since IS NULL))
);
CREATE INDEX late_answer_due ON late_answer (look_up_after);
CREATE INDEX late_answer_contradiction ON late_answer (contradicts_since) WHERE contradicts_since IS NOT NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON late_answer TO card_issuing_app;
GRANT SELECT, UPDATE (decision, look_up_after) ON late_answer TO card_issuing_operator;
