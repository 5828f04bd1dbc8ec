-- Up Migration

CREATE TABLE product (
  code text PRIMARY KEY,
  bin text NOT NULL,
  network text NOT NULL,
  is_current boolean NOT NULL DEFAULT false,
  retired_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- The card network's own reference of a product, such as a card program.
  issuer_product text,
  CHECK (NOT (is_current AND retired_at IS NOT NULL))
);
CREATE UNIQUE INDEX product_one_current ON product (is_current) WHERE is_current;

-- The products that an account may issue besides the current one.
CREATE TABLE partner_product (
  partner_id text NOT NULL REFERENCES partner,
  product_code text NOT NULL REFERENCES product,
  PRIMARY KEY (partner_id, product_code)
);

CREATE TABLE card (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  status text NOT NULL CHECK (status IN ('funding_pending', 'active', 'frozen', 'blocked', 'failed')),
  external_ref text NOT NULL,
  card_name text,
  cardholder_first_name text,
  cardholder_last_name text,
  email text,
  product_code text NOT NULL REFERENCES product,
  network text NOT NULL,
  network_card_id text,
  last4 text CHECK (last4 ~ '^[0-9]{4}$'),
  exp_month smallint CHECK (exp_month BETWEEN 1 AND 12),
  exp_year smallint,
  failure_code text,
  -- What the issuance puts on the card, and its fees: [{ type, amount }].
  funding_cents bigint NOT NULL CHECK (funding_cents > 0),
  fees jsonb NOT NULL,
  -- Since when the issuance has been past its deadline and has waited for an operator.
  overdue_since timestamptz,
  created_at timestamptz NOT NULL,
  -- The status change that is in progress; the next one waits until it is over.
  status_change_claim_id text COLLATE "C" REFERENCES idempotency_claim ON DELETE SET NULL,
  -- The UTC day whose loaded cents the funding counts towards. created_at is the time of the id, which may be
  -- the day before.
  counted_on date DEFAULT (now() AT TIME ZONE 'UTC')::date,
  -- An operator's decision on an issuance that the network doesn't confirm: { outcome, networkCardId?,
  -- refused? }. A worker carries it out. If it could not, refused says why, and the decision has no effect.
  decision jsonb,
  -- If a person said that the card was issued: when to ask the network next for its id and digits, until they
  -- are known.
  look_up_after timestamptz NOT NULL DEFAULT '-infinity',
  -- The claim whose work is in progress. NULL when that is over, so that a claim that is pruned has nothing
  -- to clear here, and the index has only pending cards.
  claim_id text COLLATE "C" REFERENCES idempotency_claim ON DELETE SET NULL,
  -- What the network was asked for besides the row's fields: { bin, named }. Under the same token it has to
  -- be asked for the same, so nobody may update this. NULL in test mode, where nobody is asked.
  asked jsonb,
  -- Why the network's decision on the card, or later its id there, could not be recorded: { reason,
  -- networkCardId?, at }.
  not_recorded jsonb,
  -- What the partner stores with the card: { key: text }.
  metadata jsonb NOT NULL DEFAULT '{}',
  -- Whether it was changed before its creation had a response. card.updated is written with that response,
  -- because a card whose creation is refused never was.
  update_unannounced boolean NOT NULL DEFAULT false,
  -- When an operator erased the cardholder's data. Then nobody can store any again.
  cardholder_erased_at timestamptz,
  -- What merchants a card can pay, and how much (docs/partners/spending-controls.md). NULL without any. An
  -- account's hold for each of its cards, in both modes.
  spending_controls jsonb,
  UNIQUE (id, partner_id, mode),
  CHECK ((status = 'failed') = (failure_code IS NOT NULL)),
  -- Without the network's id, a card in use could not be frozen, blocked, loaded or revealed.
  CHECK (status IN ('funding_pending', 'failed') OR network_card_id IS NOT NULL),
  -- 50 keys of 40 characters with values of 500, four bytes each.
  CONSTRAINT card_metadata_size
    CHECK (jsonb_typeof(metadata) = 'object' AND pg_column_size(metadata) <= 131072)
);
CREATE UNIQUE INDEX card_external_ref ON card (partner_id, mode, external_ref) WHERE status <> 'failed';
-- The network only knows its own card ids. If two of our cards had the same one, one would be charged for the
-- other.
CREATE UNIQUE INDEX card_of_network ON card (network_card_id) WHERE mode = 'live';
CREATE UNIQUE INDEX card_claim ON card (claim_id) WHERE claim_id IS NOT NULL;
CREATE UNIQUE INDEX card_status_change_claim ON card (status_change_claim_id) WHERE status_change_claim_id IS NOT NULL;
CREATE INDEX card_pending ON card (created_at) WHERE status = 'funding_pending';
CREATE INDEX card_to_identify ON card (look_up_after)
  WHERE mode = 'live' AND network_card_id IS NOT NULL AND last4 IS NULL;
-- Lists compare and order by whole keys (docs/decisions/lists-by-whole-keys.md), so all columns of an index
-- go the same way.
CREATE INDEX card_newest ON card (partner_id, mode, id);
CREATE INDEX card_newest_of_status ON card (partner_id, mode, status, id);
-- At most one card with an external_ref has not failed; any number may have.
CREATE INDEX card_newest_of_external_ref ON card (partner_id, mode, external_ref, status, id);

-- How many cards of each status an account has, for GET /overview. count_card() adds to it as a transaction
-- commits, so its row is the last lock that one takes.
CREATE TABLE card_count (
  partner_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  funding_pending bigint NOT NULL DEFAULT 0,
  active bigint NOT NULL DEFAULT 0,
  frozen bigint NOT NULL DEFAULT 0,
  blocked bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (partner_id, mode)
) WITH (fillfactor = 50);
GRANT SELECT ON card_count TO card_issuing_app, card_issuing_operator;

-- Money that moves between the prepaid balance and a card: a top-up onto it, a withdrawal back from it
-- (docs/partners/topups.md, docs/partners/withdrawals.md). While it is pending, the ledger holds it in the
-- operation <direction>/<id>.
CREATE TABLE card_transfer (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  direction text NOT NULL COLLATE "C" CHECK (direction IN ('topup', 'withdrawal')),
  status text NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
  failure_code text,
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  -- [{ type, amount }] of a top-up
  fees jsonb NOT NULL DEFAULT '[]',
  -- The card's balance when it ended.
  card_balance_cents bigint,
  -- These are as in `card`; `asked` is { networkCardId }.
  overdue_since timestamptz,
  created_at timestamptz NOT NULL,
  completed_at timestamptz,
  -- Of a top-up: the UTC day whose usage it counts in.
  counted_on date,
  decision jsonb,
  claim_id text COLLATE "C" REFERENCES idempotency_claim ON DELETE SET NULL,
  asked jsonb,
  not_recorded jsonb,
  UNIQUE (id, partner_id, mode),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  CHECK ((status = 'failed') = (failure_code IS NOT NULL)),
  CHECK ((status = 'pending') = (completed_at IS NULL)),
  CHECK ((status = 'pending') = (card_balance_cents IS NULL)),
  CHECK (direction = 'topup' OR (fees = '[]' AND counted_on IS NULL))
);
CREATE UNIQUE INDEX card_transfer_claim ON card_transfer (claim_id) WHERE claim_id IS NOT NULL;
CREATE INDEX card_transfer_pending ON card_transfer (created_at) WHERE status = 'pending';
CREATE INDEX card_transfer_pending_topups ON card_transfer (card_id) WHERE direction = 'topup' AND status = 'pending';
CREATE INDEX card_transfer_newest ON card_transfer (partner_id, mode, direction, id);
CREATE INDEX card_transfer_newest_of_card ON card_transfer (card_id, direction, id);

-- Issuances and transfers that have ended, but about which the network may still say something else: those
-- that an operator decided, and those that had a callback afterwards. A worker looks them up. The id is the
-- card's or the transfer's, which is the network's token.
CREATE TABLE late_answer (
  id text COLLATE "C" PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('card', 'topup', 'withdrawal')),
  -- Set if we ended it without the network's word, even if a refusal deleted its row. The other three are a transfer's.
  partner_id text,
  card_id text COLLATE "C",
  amount_cents bigint,
  fees jsonb,
  retry_after timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0,
  -- What the network says that contradicts our record, its id of a card, and since when.
  said text CHECK (said IN ('yes', 'no')),
  network_card_id text,
  contradicts_since timestamptz,
  -- What an operator decided about that: { outcome: booked | dismissed, refused? }.
  decision jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((said IS NULL) = (contradicts_since IS NULL))
);
CREATE INDEX late_answer_due ON late_answer (retry_after);
CREATE INDEX late_answer_contradiction ON late_answer (contradicts_since) WHERE contradicts_since IS NOT NULL;

-- One attempt to read a card's number. It counts towards the limit whether or not the network responded. It
-- is also the audit's record, and has no digit of the card.
CREATE TABLE card_reveal (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  api_key_id text NOT NULL REFERENCES api_key,
  request_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  client_address text,
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode)
);
CREATE INDEX card_reveal_recent ON card_reveal (partner_id, mode, created_at);
CREATE INDEX card_reveal_of_card ON card_reveal (card_id, created_at);

-- An attempt that was refused. It does not count towards the limit.
CREATE TABLE refused_reveal (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  -- What the request named, if it has the form of a card's id.
  card_id text COLLATE "C",
  api_key_id text NOT NULL,
  request_id text NOT NULL,
  client_address text NOT NULL,
  reason text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX refused_reveal_recent ON refused_reveal (partner_id, mode, created_at);
CREATE INDEX refused_reveal_of_card ON refused_reveal (card_id, created_at);

-- A link that shows a card's number once, to whoever has it (docs/partners/reveal-links.md). Its token is stored
-- as a keyed hash. Links live in real time.
CREATE TABLE reveal_link (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  -- The key that made it, with which it ends.
  api_key_id text NOT NULL REFERENCES api_key,
  token_hash bytea NOT NULL,
  -- Whose pages may embed it.
  frame_origins text[] NOT NULL,
  -- NULL: as the browser prefers.
  theme text CHECK (theme IN ('light', 'dark')),
  expires_at timestamptz NOT NULL,
  opened_at timestamptz,
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode)
);
CREATE INDEX reveal_link_unopened ON reveal_link (partner_id, mode, expires_at) WHERE opened_at IS NULL;
CREATE INDEX reveal_link_age ON reveal_link (expires_at);
CREATE INDEX reveal_link_of_card ON reveal_link (card_id);
GRANT SELECT, INSERT, UPDATE (opened_at) ON reveal_link TO card_issuing_api;
GRANT SELECT (id, expires_at), DELETE ON reveal_link TO card_issuing_worker;

GRANT SELECT ON product TO card_issuing_app;
GRANT SELECT, INSERT, UPDATE (bin, network, is_current, retired_at, issuer_product) ON product TO
  card_issuing_operator;
GRANT SELECT ON partner_product TO card_issuing_app;
GRANT SELECT, INSERT ON partner_product TO card_issuing_operator;
-- Operators decide and erase a cardholder. A card's id at the network is the workers' to write.
GRANT SELECT, INSERT, DELETE, UPDATE (status, card_name, cardholder_first_name, cardholder_last_name, email,
  network, network_card_id, last4, exp_month, exp_year, failure_code, overdue_since, status_change_claim_id,
  counted_on, decision, look_up_after, claim_id, not_recorded, metadata, update_unannounced,
  spending_controls) ON card TO card_issuing_app;
GRANT SELECT, UPDATE (cardholder_first_name, cardholder_last_name, email, overdue_since, decision, look_up_after,
  metadata, cardholder_erased_at) ON card TO card_issuing_operator;
-- Whose a transfer is and what it is about never change. One that is booked on a blocked card costs no fee.
GRANT SELECT, INSERT, DELETE, UPDATE (status, failure_code, fees, card_balance_cents, overdue_since, completed_at,
  counted_on, decision, claim_id, not_recorded) ON card_transfer TO card_issuing_app;
GRANT SELECT, UPDATE (overdue_since, decision) ON card_transfer TO card_issuing_operator;
GRANT SELECT, INSERT, DELETE, UPDATE ON late_answer TO card_issuing_app;
GRANT SELECT, UPDATE (retry_after, decision) ON late_answer TO card_issuing_operator;
GRANT SELECT ON card_reveal TO card_issuing_app, card_issuing_operator;
GRANT INSERT ON card_reveal TO card_issuing_api;
GRANT SELECT, INSERT ON refused_reveal TO card_issuing_app;
GRANT SELECT ON refused_reveal TO card_issuing_operator;
