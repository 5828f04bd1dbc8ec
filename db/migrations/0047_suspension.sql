-- Up Migration

-- Since when an account's keys are refused, and why; NULL if they are not. Its money, workflows and webhooks go on.
ALTER TABLE partner
  ADD suspended_at timestamptz,
  ADD suspension_reason text,
  ADD CONSTRAINT partner_suspension CHECK ((suspended_at IS NULL) = (suspension_reason IS NULL)) NOT VALID;
GRANT UPDATE (suspended_at, suspension_reason) ON partner TO card_issuing_operator;
