-- Up Migration

-- What was recorded before there was a chain joins it. From 0043 on, entries queue themselves.
INSERT INTO audit_unchained (id)
  SELECT id FROM (SELECT id FROM audit_entry UNION ALL SELECT id FROM card_reveal) e
  WHERE NOT EXISTS (SELECT FROM audit_chain c WHERE c.id = e.id)
  ON CONFLICT DO NOTHING;
