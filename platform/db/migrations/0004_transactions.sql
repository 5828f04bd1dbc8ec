-- Up Migration

-- A purchase, a decline or a refund, as the network settled it.
CREATE TABLE card_transaction (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  -- The id that the network, or the simulation of it, has for the transaction.
  network_transaction_id text NOT NULL,
  -- What was reported. A purchase may have become a decline.
  requested_type text NOT NULL CHECK (requested_type IN ('purchase', 'decline', 'refund')),
  forced boolean NOT NULL,
  type text NOT NULL CHECK (type IN ('purchase', 'decline', 'refund')),
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  -- [{ type, amount }]
  fees jsonb NOT NULL,
  merchant_name text,
  merchant_category_code text,
  merchant_city text,
  merchant_country text,
  decline_reason text,
  charged_to text NOT NULL CHECK (charged_to IN ('card', 'partner_balance')),
  card_balance_after_cents bigint NOT NULL,
  created_at timestamptz NOT NULL,
  UNIQUE (id, partner_id, mode),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  CHECK ((type = 'decline') = (decline_reason IS NOT NULL)),
  CHECK (type = requested_type OR (requested_type = 'purchase' AND type = 'decline'))
);
CREATE UNIQUE INDEX card_transaction_of_network ON card_transaction (mode, network_transaction_id);
CREATE INDEX card_transaction_newest ON card_transaction (partner_id, mode, id);
CREATE INDEX card_transaction_newest_of_card ON card_transaction (card_id, id);

-- What the card network reported and could not be booked at once, such as a transaction on a card that we don't know
-- yet. It is kept until it is booked or an operator dismisses it (docs/decisions/kept-network-messages.md).
CREATE TABLE network_message (
  id text COLLATE "C" PRIMARY KEY,
  network text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL CHECK (kind = 'transaction'),
  -- The network's id for it; for a transaction, its networkTransactionId.
  message_id text COLLATE "C" NOT NULL,
  -- A keyed hash of the content. Another content under the same id is another row.
  fingerprint bytea NOT NULL,
  -- What was received, sealed.
  body bytea NOT NULL,
  size_bytes integer NOT NULL,
  network_card_id text COLLATE "C",
  status text COLLATE "C" NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'booked', 'dismissed')),
  reason text COLLATE "C" NOT NULL,
  transaction_id text COLLATE "C" REFERENCES card_transaction,
  created_at timestamptz NOT NULL DEFAULT now(),
  retry_after timestamptz NOT NULL DEFAULT '-infinity',
  ended_at timestamptz,
  CHECK ((status = 'booked') = (transaction_id IS NOT NULL)),
  CHECK ((status = 'waiting') = (ended_at IS NULL))
);
CREATE UNIQUE INDEX network_message_once ON network_message (network, kind, message_id, fingerprint);
CREATE INDEX network_message_waiting ON network_message (network_card_id, id) INCLUDE (size_bytes) WHERE status = 'waiting';
CREATE INDEX network_message_ended ON network_message (ended_at) WHERE status <> 'waiting';

CREATE FUNCTION hint_at_network_messages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM network_message WHERE status = 'waiting' AND network_card_id = NEW.network_card_id) THEN
    PERFORM pg_notify('card_identified', NEW.network_card_id);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER hint_at_network_messages AFTER UPDATE OF status, network_card_id ON card FOR EACH ROW
  WHEN (NEW.mode = 'live' AND NEW.network_card_id IS NOT NULL
    AND (OLD.network_card_id IS DISTINCT FROM NEW.network_card_id OR OLD.status = 'funding_pending'))
  EXECUTE FUNCTION hint_at_network_messages();

GRANT SELECT, INSERT ON card_transaction TO card_issuing_app, card_issuing_operator;
GRANT SELECT, INSERT, DELETE, UPDATE (status, reason, transaction_id, retry_after, ended_at) ON network_message
  TO card_issuing_app;
GRANT SELECT, UPDATE (body, status, reason, transaction_id, ended_at) ON network_message TO card_issuing_operator;
