-- Up Migration

-- The row says how an event stands, and the relay makes every attempt by it. The event's workflow keeps the time until the
-- next one; it is told what came of each, and started by that if there is none.
ALTER TABLE delivery
  -- Attempts since the schedule began: with the event, or when it was last sent again.
  ADD schedule_attempts integer NOT NULL DEFAULT 0,
  -- none: there is none. untold: it has yet to hear how the event stands, or to be started. told: it has heard.
  ADD workflow text NOT NULL DEFAULT 'none' CHECK (workflow IN ('none', 'untold', 'told'));

-- What failed before this migration has its workflow. The default schedule makes five attempts, from the first anew each
-- time it is begun again.
UPDATE delivery SET workflow = 'told', schedule_attempts = (attempt_count - 1) % 5 + 1
  WHERE status IN ('retrying', 'given_up');

CREATE INDEX delivery_untold ON delivery (partner_id, mode, event_id)
  WHERE workflow = 'untold' AND status <> 'pending';
CREATE INDEX delivery_due ON delivery (next_attempt_at) WHERE status = 'retrying';

-- When the account's whole allowance of workflows to start or tell is there again.
ALTER TABLE webhook_endpoint ADD workflows_full_at timestamptz NOT NULL DEFAULT '-infinity';
