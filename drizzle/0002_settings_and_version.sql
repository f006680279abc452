CREATE TABLE "outbox"."version" (
	"only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"major" integer NOT NULL,
	"since" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "version_only" CHECK ("outbox"."version"."only")
);
--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD COLUMN "region" text;--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD COLUMN "processor" text;--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD COLUMN "capture_response" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD COLUMN "previous_secrets" json DEFAULT '[]'::json NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox"."endpoint" ADD COLUMN "unreviewed" text;--> statement-breakpoint
CREATE INDEX "operation_subject" ON "outbox"."operation" USING btree ("subject","id");--> statement-breakpoint
CREATE INDEX "receipt_undelivered" ON "outbox"."receipt" USING btree ("ending","delivery_id") WHERE "outbox"."receipt"."ending" <> 'delivered';--> statement-breakpoint
CREATE INDEX "receipt_unknown" ON "outbox"."receipt" USING btree ("delivery_id") WHERE "outbox"."receipt"."certainty" = 'unknown';--> statement-breakpoint
CREATE INDEX "queue_lost" ON "outbox"."queue" USING btree ("next_attempt_at") WHERE "outbox"."queue"."lost" > 0;--> statement-breakpoint
INSERT INTO outbox.version (major) VALUES (1);
--> statement-breakpoint
REVOKE ALL ON outbox.version FROM PUBLIC;
