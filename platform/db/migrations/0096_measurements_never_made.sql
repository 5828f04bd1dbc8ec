-- Up Migration

-- Since when something is to be measured, so that what was never measured can be late, too.
ALTER TABLE measurement ADD created_at timestamptz NOT NULL DEFAULT now();
