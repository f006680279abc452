ALTER TABLE "outbox"."poller" ADD COLUMN "declines" integer[] DEFAULT '{}' NOT NULL;
--> statement-breakpoint
CREATE OR REPLACE VIEW outbox.pollers AS
SELECT p.name, p.version, p.started_at, p.beat_at AS last_heartbeat, p.heartbeat_ms,
  p.beat_at > statement_timestamp() - 3 * p.heartbeat_ms * interval '1 millisecond' AS alive,
  ARRAY(SELECT e.name FROM outbox.endpoint e WHERE e.id = ANY (p.declines) ORDER BY e.name) AS declines
FROM outbox.poller p;
--> statement-breakpoint
COMMENT ON COLUMN outbox.pollers.declines IS 'Endpoints that it cannot send to, for want of a secret or a payload: the others have their lanes';
