-- One entry of the audit log: an operator's change, a partner's reveal, or a reveal that was refused.
-- `content` is what the chain protects (docs/decisions/audit-chain.md). It may never change for an entry that
-- exists, so a later column needs another content.
CREATE OR REPLACE FUNCTION audit_row(entry_id text) RETURNS TABLE (id text, at timestamptz, actor text, action text, subject text,
  detail jsonb, operator text, os_user text, host text, database_login text, client_address text, content text)
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT e.*, jsonb_build_array(e.id, extract(epoch FROM e.at), e.actor, e.action, e.subject, e.detail, e.operator, e.os_user,
    e.host, e.database_login, e.client_address)::text
  FROM (
    SELECT a.id, a.at, a.actor, a.action, a.subject, a.detail, a.operator, a.os_user, a.host, a.database_login,
      NULL::text AS client_address
    FROM audit_entry a WHERE a.id = entry_id COLLATE "C"
    UNION ALL
    SELECT r.id, r.created_at, r.partner_id || '/' || r.api_key_id, 'card.reveal', r.card_id,
      jsonb_build_object('mode', r.mode, 'request_id', r.request_id), NULL, NULL, NULL, NULL, r.client_address
    FROM card_reveal r WHERE r.id = entry_id COLLATE "C"
    UNION ALL
    SELECT f.id, f.created_at, f.partner_id || '/' || f.api_key_id, 'card.reveal-refused', coalesce(f.card_id, f.partner_id),
      jsonb_build_object('mode', f.mode, 'request_id', f.request_id, 'reason', f.reason), NULL, NULL, NULL, NULL,
      f.client_address
    FROM refused_reveal f WHERE f.id = entry_id COLLATE "C"
  ) e;
END;

GRANT EXECUTE ON FUNCTION audit_row TO card_issuing_operator;
