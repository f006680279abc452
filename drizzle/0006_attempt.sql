ALTER TABLE "outbox"."endpoint" ADD COLUMN "status_policy" json;--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD COLUMN "on_409" text DEFAULT 'retry' NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD COLUMN "on_unknown" text DEFAULT 'retry' NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD COLUMN "key_format" text DEFAULT 'bare' NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD COLUMN "failures" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD COLUMN "failing_since" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD COLUMN "rejections" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD COLUMN "trip_ms" integer;--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD CONSTRAINT "endpoint_on_409" CHECK ("outbox"."endpoint"."on_409" in ('retry', 'delivered', 'dead'));--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD CONSTRAINT "endpoint_on_unknown" CHECK ("outbox"."endpoint"."on_unknown" in ('retry', 'review'));--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD CONSTRAINT "endpoint_key_format" CHECK ("outbox"."endpoint"."key_format" in ('bare', 'sf-string'));--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD CONSTRAINT "endpoint_health" CHECK ("outbox"."endpoint"."failures" >= 0 and "outbox"."endpoint"."rejections" >= 0 and "outbox"."endpoint"."trip_ms" > 0);
--> statement-breakpoint
CREATE OR REPLACE VIEW outbox.endpoints AS
SELECT e.name AS endpoint, e.class,
  CASE WHEN e.removed_at IS NOT NULL THEN 'removed'
       WHEN e.unreviewed IS NOT NULL THEN 'waits for review: ' || e.unreviewed
       WHEN e.paused_at IS NOT NULL THEN 'paused: ' || e.paused_reason
       WHEN e.backoff_until > statement_timestamp() THEN 'backing off until ' || to_char(e.backoff_until AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"')
       WHEN e.tripped_until > statement_timestamp() THEN 'tripped until ' || to_char(e.tripped_until AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"')
       WHEN e.tripped_until IS NOT NULL THEN 'tripped, one delivery at a time probes it'
       ELSE 'open' END AS state,
  e.url, e.region, e.processor, e.secret_ref AS secret, e.previous_secrets, e.authorization_ref AS "authorization", e.headers,
  e.timeout_ms, e.retry_delay_ms, e.backoff_factor, e.max_delay_ms, e.horizon_ms, e.max_attempts, e.key_window_ms, e.concurrency,
  e.partitions, e.on_dead, e.retention_days, e.capture_response, e.allow_insecure, e.allow_private,
  e.paused_at, e.paused_reason, e.backoff_until, e.tripped_until, e.unreviewed, e.removed_at, e.version, e.created_at, e.updated_at,
  e.status_policy, e.on_409, e.on_unknown, e.key_format, e.failures, e.failing_since, e.rejections
FROM outbox.endpoint e;
--> statement-breakpoint
COMMENT ON COLUMN outbox.endpoints.state IS 'open, paused: why, backing off until, tripped until, tripped and probed, waits for review: what changed, or removed';
COMMENT ON COLUMN outbox.endpoints.status_policy IS 'HTTP statuses that mean something else here than they say';
COMMENT ON COLUMN outbox.endpoints.on_409 IS 'What a 409 means';
COMMENT ON COLUMN outbox.endpoints.on_unknown IS 'retry: an unknown outcome is tried again; review: never by itself';
COMMENT ON COLUMN outbox.endpoints.key_format IS 'Form of the idempotency-key header';
COMMENT ON COLUMN outbox.endpoints.failures IS 'Attempts that failed in a row, over all pollers';
COMMENT ON COLUMN outbox.endpoints.failing_since IS 'When the first of them ended';
COMMENT ON COLUMN outbox.endpoints.rejections IS 'Deliveries rejected in a row as if the endpoint itself were wrong: 5 pause it';
