-- What time it is for an account in a mode, in this transaction: every statement on a tenant's row takes the
-- time from here, or from account_time() (docs/decisions/sandbox-clock.md).
CREATE OR REPLACE FUNCTION account_now(account text, of_mode text) RETURNS timestamptz LANGUAGE sql STABLE
RETURN account_time(account, of_mode, now());

GRANT EXECUTE ON FUNCTION account_now TO card_issuing_app, card_issuing_operator;
