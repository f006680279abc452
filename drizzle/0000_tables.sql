CREATE SCHEMA IF NOT EXISTS "outbox";
--> statement-breakpoint
CREATE TABLE "outbox"."attempt" (
	"delivery_id" bigint NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"finished_at" timestamp with time zone NOT NULL,
	"token" uuid NOT NULL,
	"number" integer NOT NULL,
	"lag_ms" bigint,
	"bytes_out" integer,
	"bytes_in" integer,
	"retry_after_ms" bigint,
	"http_status" smallint,
	"request_sent" boolean,
	"replayed" boolean DEFAULT false NOT NULL,
	"outcome" text NOT NULL,
	"verdict" text NOT NULL,
	"reason" text,
	"phase" text,
	"target_host" text,
	"poller" text NOT NULL,
	"excerpt" text,
	CONSTRAINT "attempt_delivery_id_number_pk" PRIMARY KEY("delivery_id","number"),
	CONSTRAINT "attempt_number" CHECK ("outbox"."attempt"."number" > 0),
	CONSTRAINT "attempt_outcome" CHECK ("outbox"."attempt"."outcome" in ('delivered', 'not_applied', 'unknown', 'rejected')),
	CONSTRAINT "attempt_verdict" CHECK ("outbox"."attempt"."verdict" in ('delivered', 'retry', 'dead', 'block')),
	CONSTRAINT "attempt_delivered" CHECK ("outbox"."attempt"."outcome" = 'delivered' or "outbox"."attempt"."reason" is not null),
	CONSTRAINT "attempt_sent" CHECK ("outbox"."attempt"."outcome" <> 'delivered' or "outbox"."attempt"."request_sent" is true),
	CONSTRAINT "attempt_time" CHECK ("outbox"."attempt"."finished_at" >= "outbox"."attempt"."started_at")
);
--> statement-breakpoint
CREATE TABLE "outbox"."delivery" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "outbox"."delivery_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"key" text NOT NULL,
	"endpoint_id" integer NOT NULL,
	"lane" smallint NOT NULL,
	"type" text NOT NULL,
	"ordering_key" text,
	"payload" json,
	"payload_ref" text,
	"payload_sha256" "bytea",
	"payload_bytes" integer,
	"erased_at" timestamp with time zone,
	"discovered_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"discovered_by" text NOT NULL,
	"scheduled_at" timestamp with time zone NOT NULL,
	"correlation_id" text,
	"traceparent" text,
	"replay_of" bigint,
	"retention_days" integer,
	CONSTRAINT "delivery_key_unique" UNIQUE("key"),
	CONSTRAINT "delivery_key" CHECK (octet_length("outbox"."delivery"."key") between 1 and 255 and "outbox"."delivery"."key" !~ '[^A-Za-z0-9._:-]'),
	CONSTRAINT "delivery_payload" CHECK (num_nonnulls("outbox"."delivery"."payload", "outbox"."delivery"."payload_ref", "outbox"."delivery"."erased_at") = 1),
	CONSTRAINT "delivery_scheduled" CHECK (isfinite("outbox"."delivery"."scheduled_at")),
	CONSTRAINT "delivery_digest" CHECK (octet_length("outbox"."delivery"."payload_sha256") = 32),
	CONSTRAINT "delivery_retention" CHECK ("outbox"."delivery"."retention_days" between 0 and 36500),
	CONSTRAINT "delivery_digest_of_payload" CHECK ("outbox"."delivery"."payload" is null or "outbox"."delivery"."payload_sha256" is not null)
);
--> statement-breakpoint
CREATE TABLE "outbox"."endpoint" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "outbox"."endpoint_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"name" text NOT NULL,
	"class" text NOT NULL,
	"url" text NOT NULL,
	"secret_ref" text NOT NULL,
	"authorization_ref" text,
	"headers" json,
	"timeout_ms" integer,
	"retry_delay_ms" integer NOT NULL,
	"backoff_factor" double precision NOT NULL,
	"max_delay_ms" integer NOT NULL,
	"horizon_ms" bigint NOT NULL,
	"max_attempts" integer,
	"key_window_ms" bigint NOT NULL,
	"concurrency" integer NOT NULL,
	"partitions" smallint NOT NULL,
	"on_dead" text NOT NULL,
	"retention_days" integer NOT NULL,
	"allow_insecure" boolean NOT NULL,
	"allow_private" boolean NOT NULL,
	"paused_at" timestamp with time zone,
	"paused_reason" text,
	"backoff_until" timestamp with time zone,
	"tripped_until" timestamp with time zone,
	"removed_at" timestamp with time zone,
	"version" integer DEFAULT 1 NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "endpoint_name_unique" UNIQUE("name"),
	CONSTRAINT "endpoint_name" CHECK (octet_length("outbox"."endpoint"."name") between 1 and 200 and "outbox"."endpoint"."name" !~ '[^A-Za-z0-9._:-]'),
	CONSTRAINT "endpoint_class" CHECK (octet_length("outbox"."endpoint"."class") between 1 and 64 and "outbox"."endpoint"."class" !~ '[^A-Za-z0-9._:-]'),
	CONSTRAINT "endpoint_url" CHECK ("outbox"."endpoint"."url" ~ '^https?://' and ("outbox"."endpoint"."allow_insecure" or "outbox"."endpoint"."url" ~ '^https:')),
	CONSTRAINT "endpoint_timeout" CHECK ("outbox"."endpoint"."timeout_ms" > 0),
	CONSTRAINT "endpoint_retry" CHECK ("outbox"."endpoint"."retry_delay_ms" >= 0 and "outbox"."endpoint"."backoff_factor" >= 1 and "outbox"."endpoint"."max_delay_ms" >= 0),
	CONSTRAINT "endpoint_limits" CHECK ("outbox"."endpoint"."horizon_ms" >= 0 and "outbox"."endpoint"."max_attempts" > 0),
	CONSTRAINT "endpoint_key_window" CHECK ("outbox"."endpoint"."key_window_ms" >= "outbox"."endpoint"."horizon_ms"),
	CONSTRAINT "endpoint_partitions" CHECK ("outbox"."endpoint"."partitions" between 1 and 1024 and "outbox"."endpoint"."partitions" <= "outbox"."endpoint"."concurrency"),
	CONSTRAINT "endpoint_on_dead" CHECK ("outbox"."endpoint"."on_dead" in ('block', 'skip')),
	CONSTRAINT "endpoint_retention" CHECK ("outbox"."endpoint"."retention_days" between 0 and 36500),
	CONSTRAINT "endpoint_paused" CHECK (("outbox"."endpoint"."paused_at" is null) = ("outbox"."endpoint"."paused_reason" is null))
);
--> statement-breakpoint
CREATE TABLE "outbox"."operation" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "outbox"."operation_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"who" text NOT NULL,
	"verb" text NOT NULL,
	"subject" text NOT NULL,
	"why" text,
	"detail" json
);
--> statement-breakpoint
CREATE TABLE "outbox"."poller" (
	"name" text PRIMARY KEY NOT NULL,
	"started_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"beat_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"heartbeat_ms" integer NOT NULL,
	"version" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "outbox"."purge_run" (
	"id" uuid PRIMARY KEY NOT NULL,
	"started_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"finished_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"batches" integer DEFAULT 1 NOT NULL,
	"deliveries" bigint NOT NULL,
	"attempts" bigint NOT NULL,
	"tombstones" bigint NOT NULL,
	"tombstones_expired" bigint NOT NULL,
	"oldest_delete_after" timestamp with time zone,
	"newest_delete_after" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "outbox"."queue" (
	"delivery_id" bigint PRIMARY KEY NOT NULL,
	"next_attempt_at" timestamp with time zone NOT NULL,
	"leased_at" timestamp with time zone,
	"ready_at" timestamp with time zone,
	"first_attempt_at" timestamp with time zone,
	"maybe_applied_at" timestamp with time zone,
	"endpoint_id" integer NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"base" integer DEFAULT 0 NOT NULL,
	"lane" smallint NOT NULL,
	"lost" smallint DEFAULT 0 NOT NULL,
	"token" uuid,
	"leased_by" text,
	"ordering_key" text,
	"blocked_reason" text,
	CONSTRAINT "queue_lease" CHECK (num_nulls("outbox"."queue"."token", "outbox"."queue"."leased_at", "outbox"."queue"."leased_by") in (0, 3)),
	CONSTRAINT "queue_lease_ends" CHECK ("outbox"."queue"."token" is null or isfinite("outbox"."queue"."next_attempt_at")),
	CONSTRAINT "queue_blocked" CHECK ("outbox"."queue"."blocked_reason" is null or "outbox"."queue"."next_attempt_at" = 'infinity'),
	CONSTRAINT "queue_parked_has_key" CHECK (isfinite("outbox"."queue"."next_attempt_at") or "outbox"."queue"."ordering_key" is not null),
	CONSTRAINT "queue_counts" CHECK ("outbox"."queue"."attempts" >= "outbox"."queue"."base" and "outbox"."queue"."base" >= 0 and "outbox"."queue"."lost" >= 0)
) WITH (
	-- Settled rows must leave the lanes' low ends soon, whatever the backlog is; no exclusive lock to shrink a table that empties all day.
	vacuum_truncate = off,
	autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
	autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000
);
--> statement-breakpoint
CREATE TABLE "outbox"."receipt" (
	"delivery_id" bigint PRIMARY KEY NOT NULL,
	"ended_at" timestamp with time zone NOT NULL,
	"delete_after" timestamp with time zone NOT NULL,
	"attempts" integer NOT NULL,
	"ending" text NOT NULL,
	"certainty" text NOT NULL,
	"reason" text,
	CONSTRAINT "receipt_ending" CHECK ("outbox"."receipt"."ending" in ('delivered', 'dead', 'cancelled')),
	CONSTRAINT "receipt_certainty" CHECK ("outbox"."receipt"."certainty" in ('delivered', 'not_applied', 'unknown', 'rejected')),
	CONSTRAINT "receipt_delivered" CHECK (("outbox"."receipt"."ending" = 'delivered') = ("outbox"."receipt"."certainty" = 'delivered')),
	CONSTRAINT "receipt_reason" CHECK ("outbox"."receipt"."ending" = 'delivered' or "outbox"."receipt"."reason" is not null),
	CONSTRAINT "receipt_retention" CHECK ("outbox"."receipt"."delete_after" >= "outbox"."receipt"."ended_at")
);
--> statement-breakpoint
CREATE TABLE "outbox"."reconciliation" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "outbox"."reconciliation_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"name" text NOT NULL,
	"started_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"finished_at" timestamp with time zone,
	"checked" bigint DEFAULT 0 NOT NULL,
	"missing" bigint DEFAULT 0 NOT NULL,
	"enqueued" bigint DEFAULT 0 NOT NULL,
	"overdue" bigint DEFAULT 0 NOT NULL,
	"mismatched" bigint DEFAULT 0 NOT NULL,
	"error" text
);
--> statement-breakpoint
CREATE TABLE "outbox"."tombstone" (
	"key_sha256" "bytea" PRIMARY KEY NOT NULL,
	"payload_sha256" "bytea",
	"delivery_id" bigint NOT NULL,
	"ended_at" timestamp with time zone NOT NULL,
	"deleted_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"delete_after" timestamp with time zone NOT NULL,
	"attempts" integer NOT NULL,
	"ending" text NOT NULL,
	"certainty" text NOT NULL
);
--> statement-breakpoint
CREATE INDEX "queue_lane" ON "outbox"."queue" USING btree ("endpoint_id","lane","next_attempt_at");--> statement-breakpoint
CREATE INDEX "queue_order" ON "outbox"."queue" USING btree ("endpoint_id","ordering_key","delivery_id") WHERE "outbox"."queue"."ordering_key" is not null;--> statement-breakpoint
CREATE INDEX "queue_parked" ON "outbox"."queue" USING btree ("endpoint_id","ordering_key","delivery_id") WHERE "outbox"."queue"."next_attempt_at" = 'infinity' and "outbox"."queue"."blocked_reason" is null;--> statement-breakpoint
CREATE INDEX "receipt_delete_after" ON "outbox"."receipt" USING btree ("delete_after");--> statement-breakpoint
CREATE INDEX "receipt_dead" ON "outbox"."receipt" USING btree ("ended_at") WHERE "outbox"."receipt"."ending" = 'dead';--> statement-breakpoint
CREATE INDEX "tombstone_delete_after" ON "outbox"."tombstone" USING btree ("delete_after");