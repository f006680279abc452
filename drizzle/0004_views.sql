-- The rest of the public face: views for people, each column with a comment.
-- A lookup stands as LATERAL with LIMIT where a join would let the planner read a whole table for a few rows.
CREATE VIEW outbox.open AS
SELECT q.delivery_id AS id, v.key, e.name AS endpoint, e.class, v.type, q.ordering_key,
  CASE WHEN q.blocked_reason IS NOT NULL THEN 'blocked'
       WHEN q.next_attempt_at = 'infinity' THEN 'parked'
       WHEN q.token IS NOT NULL AND q.next_attempt_at > statement_timestamp() THEN 'leased'
       ELSE 'waiting' END AS state,
  v.discovered_at, v.discovered_by, v.scheduled_at, q.attempts, v.last_status, v.last_outcome, v.next_attempt_at, v.lease_until,
  q.blocked_reason AS terminal_reason, v.certainty, v.payload_ref, v.payload_sha256, v.payload_bytes, v.erased_at, v.correlation_id,
  v.replay_of, v.ended_at, v.delete_after, v.why_not_yet
FROM outbox.queue q
JOIN outbox.endpoint e ON e.id = q.endpoint_id
CROSS JOIN LATERAL (SELECT v.* FROM outbox.deliveries v WHERE v.id = q.delivery_id LIMIT 1) v;
--> statement-breakpoint
CREATE VIEW outbox.ended AS
SELECT r.delivery_id AS id, d.key, e.name AS endpoint, e.class, d.type, d.ordering_key, r.ending AS state,
  d.discovered_at, d.discovered_by, d.scheduled_at, r.attempts, a.http_status AS last_status, a.outcome AS last_outcome,
  NULL::timestamptz AS next_attempt_at, NULL::timestamptz AS lease_until, r.reason AS terminal_reason, r.certainty,
  d.payload_ref, d.payload_sha256, d.payload_bytes, d.erased_at, d.correlation_id, d.replay_of, r.ended_at, r.delete_after,
  NULL::text AS why_not_yet
FROM outbox.receipt r
CROSS JOIN LATERAL (SELECT d.* FROM outbox.delivery d WHERE d.id = r.delivery_id LIMIT 1) d
CROSS JOIN LATERAL (SELECT e.* FROM outbox.endpoint e WHERE e.id = d.endpoint_id LIMIT 1) e
LEFT JOIN LATERAL (
  SELECT t.http_status, t.outcome FROM outbox.attempt t WHERE t.delivery_id = r.delivery_id ORDER BY t.number DESC LIMIT 1) a ON true;
--> statement-breakpoint
CREATE VIEW outbox.unknown AS
SELECT v.* FROM outbox.queue q
CROSS JOIN LATERAL (SELECT v.* FROM outbox.deliveries v WHERE v.id = q.delivery_id AND v.certainty = 'unknown' LIMIT 1) v
WHERE q.maybe_applied_at IS NOT NULL OR (q.token IS NOT NULL AND q.next_attempt_at <= statement_timestamp())
UNION ALL
SELECT r.* FROM outbox.ended r WHERE r.certainty = 'unknown';
--> statement-breakpoint
CREATE VIEW outbox.review AS
SELECT CASE WHEN r.terminal_reason = 'key_window_passed' THEN 'key window passed'
            WHEN r.certainty = 'unknown' THEN 'may have been applied' ELSE 'dead' END AS what,
  r.ended_at AS since, r.endpoint, r.class, r.key, r.type, r.state, r.terminal_reason AS reason, r.certainty, r.attempts, r.last_status,
  r.correlation_id, r.id AS delivery_id
FROM outbox.ended r WHERE r.state = 'dead'
UNION ALL
SELECT 'may have been applied', r.ended_at, r.endpoint, r.class, r.key, r.type, r.state, r.terminal_reason, r.certainty, r.attempts,
  r.last_status, r.correlation_id, r.id
FROM outbox.ended r WHERE r.certainty = 'unknown' AND r.state = 'cancelled'
UNION ALL
SELECT CASE WHEN q.blocked_reason IS NOT NULL THEN 'blocked' ELSE 'key window passed' END,
  CASE WHEN q.blocked_reason IS NOT NULL THEN a.finished_at ELSE q.maybe_applied_at + e.key_window_ms * interval '1 millisecond' END,
  e.name, e.class, v.key, v.type, v.state, q.blocked_reason, v.certainty, q.attempts, v.last_status, v.correlation_id, q.delivery_id
FROM outbox.queue q
CROSS JOIN LATERAL (SELECT e.* FROM outbox.endpoint e WHERE e.id = q.endpoint_id LIMIT 1) e
CROSS JOIN LATERAL (SELECT v.* FROM outbox.deliveries v WHERE v.id = q.delivery_id LIMIT 1) v
LEFT JOIN LATERAL (
  SELECT t.finished_at FROM outbox.attempt t WHERE t.delivery_id = q.delivery_id ORDER BY t.number DESC LIMIT 1) a ON true
WHERE q.blocked_reason IS NOT NULL
   OR (q.maybe_applied_at + e.key_window_ms * interval '1 millisecond' <= statement_timestamp()
       AND (q.token IS NULL OR q.next_attempt_at <= statement_timestamp()))
UNION ALL
SELECT 'endpoint change', coalesce(e.paused_at, e.updated_at), e.name, e.class, NULL, NULL, NULL, e.unreviewed, NULL, NULL, NULL, NULL, NULL
FROM outbox.endpoint e WHERE e.unreviewed IS NOT NULL AND e.removed_at IS NULL;
--> statement-breakpoint
CREATE VIEW outbox.lanes AS
-- One row of which the planner expects a hundred (json_array_elements), so that it never sorts a queue that it believes empty.
WITH RECURSIVE lane(endpoint_id, lane, first_due) AS (
  (SELECT q.endpoint_id, q.lane, q.next_attempt_at FROM outbox.queue q CROSS JOIN json_array_elements('[0]') ORDER BY q.endpoint_id, q.lane, q.next_attempt_at LIMIT 1)
  UNION ALL
  SELECT n.endpoint_id, n.lane, n.next_attempt_at FROM lane l CROSS JOIN LATERAL (
    SELECT q.endpoint_id, q.lane, q.next_attempt_at FROM outbox.queue q CROSS JOIN json_array_elements('[0]')
    WHERE (q.endpoint_id, q.lane) > (l.endpoint_id, l.lane)
    ORDER BY q.endpoint_id, q.lane, q.next_attempt_at LIMIT 1) n
)
SELECT e.name AS endpoint, e.class, l.lane, CASE l.lane / 1024 WHEN 0 THEN 'urgent' WHEN 1 THEN 'normal' ELSE 'bulk' END AS priority,
  (l.lane % 1024)::smallint AS partition, CASE WHEN isfinite(l.first_due) THEN l.first_due END AS first_due,
  CASE WHEN l.first_due <= statement_timestamp() THEN statement_timestamp() - l.first_due END AS overdue
FROM lane l JOIN outbox.endpoint e ON e.id = l.endpoint_id;
--> statement-breakpoint
CREATE VIEW outbox.pollers AS
SELECT p.name, p.version, p.started_at, p.beat_at AS last_heartbeat, p.heartbeat_ms,
  p.beat_at > statement_timestamp() - 3 * p.heartbeat_ms * interval '1 millisecond' AS alive
FROM outbox.poller p;
--> statement-breakpoint
CREATE VIEW outbox.endpoints AS
SELECT e.name AS endpoint, e.class,
  CASE WHEN e.removed_at IS NOT NULL THEN 'removed'
       WHEN e.unreviewed IS NOT NULL THEN 'waits for review: ' || e.unreviewed
       WHEN e.paused_at IS NOT NULL THEN 'paused: ' || e.paused_reason
       WHEN e.backoff_until > statement_timestamp() THEN 'backing off until ' || to_char(e.backoff_until AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"')
       WHEN e.tripped_until > statement_timestamp() THEN 'tripped until ' || to_char(e.tripped_until AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"')
       ELSE 'open' END AS state,
  e.url, e.region, e.processor, e.secret_ref AS secret, e.previous_secrets, e.authorization_ref AS "authorization", e.headers,
  e.timeout_ms, e.retry_delay_ms, e.backoff_factor, e.max_delay_ms, e.horizon_ms, e.max_attempts, e.key_window_ms, e.concurrency,
  e.partitions, e.on_dead, e.retention_days, e.capture_response, e.allow_insecure, e.allow_private,
  e.paused_at, e.paused_reason, e.backoff_until, e.tripped_until, e.unreviewed, e.removed_at, e.version, e.created_at, e.updated_at
FROM outbox.endpoint e;
--> statement-breakpoint
CREATE VIEW outbox.purges AS
SELECT p.id, p.started_at, p.finished_at, p.batches, p.deliveries, p.attempts, p.tombstones, p.tombstones_expired,
  p.oldest_delete_after, p.newest_delete_after
FROM outbox.purge_run p;
--> statement-breakpoint
CREATE VIEW outbox.operations AS
SELECT o.id, o.at, o.who, o.verb, o.subject, o.why, o.detail FROM outbox.operation o;
--> statement-breakpoint
CREATE VIEW outbox.reconciliations AS
SELECT r.id, r.name, r.started_at, r.finished_at, r.checked, r.missing, r.enqueued, r.overdue, r.mismatched, r.error
FROM outbox.reconciliation r;
--> statement-breakpoint
CREATE VIEW outbox.tombstones AS
SELECT t.key_sha256, t.payload_sha256, t.delivery_id, t.ended_at, t.ending, t.certainty, t.attempts, t.deleted_at, t.delete_after
FROM outbox.tombstone t;
--> statement-breakpoint
COMMENT ON VIEW outbox.open IS 'Deliveries that have not ended, with the columns of deliveries; reads no history';
COMMENT ON VIEW outbox.ended IS 'Deliveries that have ended, with the columns of deliveries; those not delivered are found by an index';
COMMENT ON VIEW outbox.unknown IS 'Deliveries that may have been applied, open or ended, with the columns of deliveries; a first attempt still in flight is not among them';
--> statement-breakpoint
DO $do$
DECLARE v_view text; v_column text; v_comment text;
BEGIN
  FOR v_column, v_comment IN
    SELECT a.attname, col_description(a.attrelid, a.attnum) FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = 'outbox.deliveries'::regclass AND a.attnum > 0
  LOOP
    FOREACH v_view IN ARRAY ARRAY['open', 'ended', 'unknown'] LOOP
      EXECUTE format('COMMENT ON COLUMN outbox.%I.%I IS %L', v_view, v_column, v_comment);
    END LOOP;
  END LOOP;
END
$do$;
--> statement-breakpoint
COMMENT ON VIEW outbox.lanes IS 'Lanes that have open work: endpoint and partition, the unit that pollers share';
COMMENT ON COLUMN outbox.lanes.endpoint IS 'Name of the endpoint';
COMMENT ON COLUMN outbox.lanes.class IS 'Kind of destination';
COMMENT ON COLUMN outbox.lanes.lane IS 'Number of the lane within the endpoint: priority x 1024 + partition';
COMMENT ON COLUMN outbox.lanes.priority IS 'urgent, normal or bulk';
COMMENT ON COLUMN outbox.lanes.partition IS 'Partition of the endpoint: hash of the ordering key, or else of the key';
COMMENT ON COLUMN outbox.lanes.first_due IS 'When the first row is due, or its lease ends; null: all rows are parked or blocked';
COMMENT ON COLUMN outbox.lanes.overdue IS 'For how long the first row has been due; null: it is not due yet';
COMMENT ON VIEW outbox.review IS 'What a person must look at: dead deliveries, those that may have been applied, blocked heads, passed key windows, changed endpoints';
COMMENT ON COLUMN outbox.review.what IS 'dead, may have been applied, key window passed, blocked, or endpoint change';
COMMENT ON COLUMN outbox.review.since IS 'Since when';
COMMENT ON COLUMN outbox.review.endpoint IS 'Name of the endpoint';
COMMENT ON COLUMN outbox.review.class IS 'Kind of destination';
COMMENT ON COLUMN outbox.review.key IS 'Idempotency key; null for an endpoint change';
COMMENT ON COLUMN outbox.review.type IS 'Event type';
COMMENT ON COLUMN outbox.review.state IS 'State of the delivery';
COMMENT ON COLUMN outbox.review.reason IS 'Why it is dead or blocked, or what was changed';
COMMENT ON COLUMN outbox.review.certainty IS 'Could the other side have applied it, over all attempts';
COMMENT ON COLUMN outbox.review.attempts IS 'Attempts made';
COMMENT ON COLUMN outbox.review.last_status IS 'HTTP status of the last attempt';
COMMENT ON COLUMN outbox.review.correlation_id IS 'Given by the app';
COMMENT ON COLUMN outbox.review.delivery_id IS 'Number of the delivery';
COMMENT ON VIEW outbox.pollers IS 'Who delivers: one row per poller, gone a day after its last heartbeat';
COMMENT ON COLUMN outbox.pollers.name IS 'Name of the poller, as in leases and attempts';
COMMENT ON COLUMN outbox.pollers.version IS 'Version of outledger that it runs';
COMMENT ON COLUMN outbox.pollers.started_at IS 'When it started';
COMMENT ON COLUMN outbox.pollers.last_heartbeat IS 'When its claiming loop last said that it is alive';
COMMENT ON COLUMN outbox.pollers.heartbeat_ms IS 'Interval of its heartbeat in milliseconds';
COMMENT ON COLUMN outbox.pollers.alive IS 'False: three heartbeats were missed, and the others have taken its lanes';
COMMENT ON VIEW outbox.endpoints IS 'Endpoints with their settings: secrets only as references, and what stops them in words';
COMMENT ON COLUMN outbox.endpoints.endpoint IS 'Name of the endpoint';
COMMENT ON COLUMN outbox.endpoints.class IS 'Kind of destination';
COMMENT ON COLUMN outbox.endpoints.state IS 'open, paused: why, backing off until, tripped until, waits for review: what changed, or removed';
COMMENT ON COLUMN outbox.endpoints.url IS 'Where deliveries are posted';
COMMENT ON COLUMN outbox.endpoints.region IS 'Where the receiver keeps what it is sent';
COMMENT ON COLUMN outbox.endpoints.processor IS 'Who processes what is sent there';
COMMENT ON COLUMN outbox.endpoints.secret IS 'Reference to the signing secret';
COMMENT ON COLUMN outbox.endpoints.previous_secrets IS 'References to earlier secrets that still sign, each with its end';
COMMENT ON COLUMN outbox.endpoints."authorization" IS 'Reference to the value of the authorization header';
COMMENT ON COLUMN outbox.endpoints.headers IS 'Further headers, stored in clear: nothing secret belongs there';
COMMENT ON COLUMN outbox.endpoints.timeout_ms IS 'Deadline of one request; null: that of the poller';
COMMENT ON COLUMN outbox.endpoints.retry_delay_ms IS 'Pause after a failed attempt';
COMMENT ON COLUMN outbox.endpoints.backoff_factor IS 'Each further pause is so many times the one before';
COMMENT ON COLUMN outbox.endpoints.max_delay_ms IS 'Longest pause that backoff grows to';
COMMENT ON COLUMN outbox.endpoints.horizon_ms IS 'An attempt that fails later than this after the first ends the delivery';
COMMENT ON COLUMN outbox.endpoints.max_attempts IS 'Attempts before the delivery ends; null: only the horizon counts';
COMMENT ON COLUMN outbox.endpoints.key_window_ms IS 'How long the receiver remembers a key';
COMMENT ON COLUMN outbox.endpoints.concurrency IS 'Requests in flight at once, all pollers together';
COMMENT ON COLUMN outbox.endpoints.partitions IS 'Lanes';
COMMENT ON COLUMN outbox.endpoints.on_dead IS 'block: a dead head of an ordering key keeps its place; skip: the next one goes on';
COMMENT ON COLUMN outbox.endpoints.retention_days IS 'How long an ended delivery is kept';
COMMENT ON COLUMN outbox.endpoints.capture_response IS 'Part of each response body is kept';
COMMENT ON COLUMN outbox.endpoints.allow_insecure IS 'http: is permitted';
COMMENT ON COLUMN outbox.endpoints.allow_private IS 'Loopback, private and other special addresses are permitted';
COMMENT ON COLUMN outbox.endpoints.paused_at IS 'Since when it is paused';
COMMENT ON COLUMN outbox.endpoints.paused_reason IS 'Why it is paused';
COMMENT ON COLUMN outbox.endpoints.backoff_until IS 'Until when it backs off, as a 429 or Retry-After asked';
COMMENT ON COLUMN outbox.endpoints.tripped_until IS 'Until when the circuit is open';
COMMENT ON COLUMN outbox.endpoints.unreviewed IS 'Change of the destination that a person has not reviewed';
COMMENT ON COLUMN outbox.endpoints.removed_at IS 'When it was removed';
COMMENT ON COLUMN outbox.endpoints.version IS 'Counts the changes';
COMMENT ON COLUMN outbox.endpoints.created_at IS 'When it was created';
COMMENT ON COLUMN outbox.endpoints.updated_at IS 'When it was last changed';
COMMENT ON VIEW outbox.purges IS 'Runs of the purge that deleted something';
COMMENT ON COLUMN outbox.purges.id IS 'Id of the run';
COMMENT ON COLUMN outbox.purges.started_at IS 'When its first batch was done';
COMMENT ON COLUMN outbox.purges.finished_at IS 'When its last batch was done';
COMMENT ON COLUMN outbox.purges.batches IS 'Batches, each one transaction';
COMMENT ON COLUMN outbox.purges.deliveries IS 'Deliveries deleted';
COMMENT ON COLUMN outbox.purges.attempts IS 'Attempts deleted';
COMMENT ON COLUMN outbox.purges.tombstones IS 'Tombstones written';
COMMENT ON COLUMN outbox.purges.tombstones_expired IS 'Tombstones deleted: their keys may be used again';
COMMENT ON COLUMN outbox.purges.oldest_delete_after IS 'Earliest delete_after among what was deleted';
COMMENT ON COLUMN outbox.purges.newest_delete_after IS 'Latest delete_after among what was deleted';
COMMENT ON VIEW outbox.operations IS 'Who did what, when and why';
COMMENT ON COLUMN outbox.operations.id IS 'Number of the operation';
COMMENT ON COLUMN outbox.operations.at IS 'When';
COMMENT ON COLUMN outbox.operations.who IS 'Who';
COMMENT ON COLUMN outbox.operations.verb IS 'What was done';
COMMENT ON COLUMN outbox.operations.subject IS 'To which endpoint, or to which key';
COMMENT ON COLUMN outbox.operations.why IS 'Why, in the words of who did it';
COMMENT ON COLUMN outbox.operations.detail IS 'What was and what is; secrets only as references';
COMMENT ON VIEW outbox.reconciliations IS 'Runs of reconciliations of business rows against the ledger';
COMMENT ON COLUMN outbox.reconciliations.id IS 'Number of the run';
COMMENT ON COLUMN outbox.reconciliations.name IS 'Name of the reconciliation';
COMMENT ON COLUMN outbox.reconciliations.started_at IS 'When it started';
COMMENT ON COLUMN outbox.reconciliations.finished_at IS 'When it ended; null: it runs, or was interrupted';
COMMENT ON COLUMN outbox.reconciliations.checked IS 'Keys that must exist';
COMMENT ON COLUMN outbox.reconciliations.missing IS 'Keys that had no delivery';
COMMENT ON COLUMN outbox.reconciliations.enqueued IS 'Deliveries written by this run';
COMMENT ON COLUMN outbox.reconciliations.overdue IS 'Deliveries found open for too long';
COMMENT ON COLUMN outbox.reconciliations.mismatched IS 'Keys that stand for something else';
COMMENT ON COLUMN outbox.reconciliations.error IS 'What went wrong';
COMMENT ON VIEW outbox.tombstones IS 'What is left of purged deliveries, so that their keys still deduplicate';
COMMENT ON COLUMN outbox.tombstones.key_sha256 IS 'SHA-256 of the key';
COMMENT ON COLUMN outbox.tombstones.payload_sha256 IS 'SHA-256 of the payload';
COMMENT ON COLUMN outbox.tombstones.delivery_id IS 'Number that the delivery had';
COMMENT ON COLUMN outbox.tombstones.ended_at IS 'When the delivery ended';
COMMENT ON COLUMN outbox.tombstones.ending IS 'How it ended: delivered, dead or cancelled';
COMMENT ON COLUMN outbox.tombstones.certainty IS 'Could the other side have applied it';
COMMENT ON COLUMN outbox.tombstones.attempts IS 'Attempts made';
COMMENT ON COLUMN outbox.tombstones.deleted_at IS 'When it was purged';
COMMENT ON COLUMN outbox.tombstones.delete_after IS 'Until when the key deduplicates';
--> statement-breakpoint
REVOKE ALL ON outbox.open, outbox.ended, outbox.unknown, outbox.review, outbox.lanes, outbox.pollers, outbox.endpoints, outbox.purges,
  outbox.operations, outbox.reconciliations, outbox.tombstones FROM PUBLIC;
