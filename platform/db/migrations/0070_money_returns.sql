-- Up Migration

-- The card network's own reference of a product, such as a card program.
ALTER TABLE product ADD issuer_product text;
GRANT UPDATE (issuer_product) ON product TO card_issuing_operator;

-- Money that was released from a blocked live card to the prepaid balance, and that the card network has to take back from the
-- card's account there (docs/decisions/card-networks.md). A trigger writes it with the posting.
CREATE TABLE money_return (
  id text COLLATE "C" PRIMARY KEY,
  -- The ledger's transfer that released it.
  transfer_id uuid NOT NULL UNIQUE,
  operation_id text COLLATE "C" NOT NULL,
  -- As the ledger names them: nothing else may keep it from posting.
  partner_id text NOT NULL,
  mode text NOT NULL CHECK (mode = 'live'),
  card_id text COLLATE "C" NOT NULL,
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  -- What the network is asked with; an operator's retry asks with another one.
  token text COLLATE "C" NOT NULL UNIQUE,
  status text COLLATE "C" NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'succeeded', 'refused', 'dismissed')),
  -- The network's reason for its last refusal.
  reason text,
  attempts integer NOT NULL DEFAULT 0,
  retry_after timestamptz NOT NULL DEFAULT '-infinity',
  created_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  CHECK ((status = 'refused') = (reason IS NOT NULL)),
  CHECK ((status IN ('succeeded', 'dismissed')) = (ended_at IS NOT NULL))
);
CREATE INDEX money_return_due ON money_return (retry_after, id) WHERE status = 'pending';
CREATE INDEX money_return_waiting ON money_return (created_at) WHERE status IN ('pending', 'refused');
CREATE INDEX money_return_newest ON money_return (status, id);
CREATE INDEX money_return_of_card ON money_return (card_id, id);

CREATE FUNCTION note_money_return() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  id text := 'ret_' || public.id_time(clock_timestamp()) || substr(replace(gen_random_uuid()::text, '-', ''), 17);
BEGIN
  INSERT INTO public.money_return (id, transfer_id, operation_id, partner_id, mode, card_id, amount_cents, token)
  VALUES (id, NEW.id, NEW.operation_id, NEW.partner_id, NEW.mode, substr(NEW.debit_id, 6), NEW.amount, id);
  RETURN NULL;
END $$;
CREATE TRIGGER returned AFTER INSERT ON ledger.transfer FOR EACH ROW
  WHEN (NEW.code = 'block_release' AND NEW.mode = 'live') EXECUTE FUNCTION note_money_return();

GRANT SELECT, UPDATE (status, reason, attempts, retry_after, ended_at) ON money_return TO card_issuing_app;
GRANT SELECT, UPDATE (token, status, reason, retry_after, ended_at) ON money_return TO card_issuing_operator;
