-- What drizzle cannot say: the public function, the public views, and who may touch what.
COMMENT ON SCHEMA outbox IS 'outledger: transactional outbox and delivery ledger';
--> statement-breakpoint
CREATE FUNCTION outbox.enqueue(
  p_endpoint text, p_key text, p_type text, p_payload text,
  p_ordering_key text DEFAULT NULL, p_delay_ms text DEFAULT NULL, p_not_before text DEFAULT NULL,
  p_correlation_id text DEFAULT NULL, p_traceparent text DEFAULT NULL, p_payload_ref text DEFAULT NULL,
  p_retention_days text DEFAULT NULL, p_discovered_by text DEFAULT 'app')
RETURNS TABLE (id bigint, inserted boolean, conflict text, purged boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $fn$
DECLARE
  v_endpoint int; v_partitions int; v_removed timestamptz; v_lane int;
  v_payload json; v_sha bytea; v_bytes int := octet_length(p_payload);
  v_delay bigint; v_scheduled timestamptz; v_next timestamptz; v_now timestamptz;
  v_field text; v_what text;
BEGIN
  -- One value is wrong at a time; the message names it, its length and the limit, and never repeats a payload.
  IF p_key IS NULL OR octet_length(p_key) NOT BETWEEN 1 AND 255 OR p_key COLLATE "C" ~ '[^A-Za-z0-9._:-]' THEN
    v_field := 'key';
    v_what := format('is %s; it must be 1 to 255 of A-Z a-z 0-9 . _ : -', coalesce(octet_length(p_key) || ' bytes long', 'missing'));
  ELSIF p_type IS NULL OR octet_length(p_type) NOT BETWEEN 1 AND 200 OR p_type COLLATE "C" ~ '[^!-~]' THEN
    v_field := 'type';
    v_what := format('is %s; it must be 1 to 200 printable ASCII characters without spaces', coalesce(octet_length(p_type) || ' bytes long', 'missing'));
  ELSIF num_nonnulls(p_payload, p_payload_ref) <> 1 THEN
    v_field := 'payload'; v_what := 'or payload_ref must be given, and only one of them';
  ELSIF v_bytes > 262144 THEN
    v_field := 'payload'; v_what := format('is %s bytes long; the limit is 262144: store it elsewhere and pass payload_ref', v_bytes);
  ELSIF octet_length(p_payload_ref) NOT BETWEEN 1 AND 2000 THEN
    v_field := 'payload_ref'; v_what := format('is %s bytes long; it must be 1 to 2000', octet_length(p_payload_ref));
  ELSIF octet_length(p_ordering_key) NOT BETWEEN 1 AND 400 THEN
    v_field := 'ordering_key'; v_what := format('is %s bytes long; it must be 1 to 400', octet_length(p_ordering_key));
  ELSIF octet_length(p_correlation_id) NOT BETWEEN 1 AND 255 OR p_correlation_id COLLATE "C" ~ '[^!-~]' THEN
    v_field := 'correlation_id'; v_what := format('is %s bytes long; it must be 1 to 255 printable ASCII characters without spaces', octet_length(p_correlation_id));
  ELSIF octet_length(p_traceparent) <> 55 OR p_traceparent COLLATE "C" ~ '[^0-9a-f-]' THEN
    v_field := 'traceparent'; v_what := format('is %s bytes long; it must be the 55 characters of a W3C traceparent', octet_length(p_traceparent));
  ELSIF p_retention_days IS NOT NULL AND (p_retention_days COLLATE "C" ~ '[^0-9]' OR octet_length(p_retention_days) NOT BETWEEN 1 AND 5 OR p_retention_days::int > 36500) THEN
    v_field := 'retention_days'; v_what := 'must be a whole number of days, 0 to 36500';
  ELSIF p_delay_ms IS NOT NULL AND (p_delay_ms COLLATE "C" ~ '[^0-9]' OR octet_length(p_delay_ms) NOT BETWEEN 1 AND 12 OR p_delay_ms::bigint > 315360000000) THEN
    v_field := 'delay_ms'; v_what := 'must be a whole number of milliseconds, 0 to 315360000000 (ten years)';
  ELSIF num_nonnulls(p_delay_ms, p_not_before) > 1 THEN
    v_field := 'delay_ms'; v_what := 'and not_before exclude each other: give one of them';
  ELSIF p_discovered_by IS NULL OR octet_length(p_discovered_by) NOT BETWEEN 1 AND 200 THEN
    v_field := 'discovered_by'; v_what := 'must be 1 to 200 bytes';
  END IF;
  IF v_field IS NOT NULL THEN
    RAISE EXCEPTION USING errcode = '22023', column = v_field, message = format('outledger: %s %s', v_field, v_what);
  END IF;

  -- A parse error of Postgres would quote the payload; ours does not.
  BEGIN
    v_payload := p_payload::json;
  EXCEPTION WHEN invalid_text_representation OR untranslatable_character OR statement_too_complex THEN
    RAISE EXCEPTION USING errcode = '22023', column = 'payload',
      message = format('outledger: payload of %s bytes is not valid JSON', v_bytes);
  END;
  IF json_typeof(v_payload) NOT IN ('object', 'array') THEN
    RAISE EXCEPTION USING errcode = '22023', column = 'payload',
      message = format('outledger: payload is a JSON %s; it must be an object or an array', json_typeof(v_payload));
  END IF;
  v_sha := sha256(convert_to(p_payload, 'UTF8'));

  SELECT e.id, e.partitions, e.removed_at INTO v_endpoint, v_partitions, v_removed FROM outbox.endpoint e WHERE e.name = p_endpoint;
  IF NOT FOUND OR v_removed IS NOT NULL THEN
    RAISE EXCEPTION USING errcode = '22023', column = 'endpoint',
      message = format('outledger: endpoint %s %s', coalesce(quote_literal(left(p_endpoint, 200)), 'null'),
        CASE WHEN v_removed IS NULL THEN 'does not exist; create it with "outledger endpoint put"' ELSE 'was removed; enqueue to another one' END);
  END IF;

  -- Before the identity value is drawn, so that within one ordering key the order of ids is the order of commits.
  IF p_ordering_key IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_ordering_key, v_endpoint));
  END IF;

  v_now := clock_timestamp();
  BEGIN
    v_scheduled := greatest(v_now, v_now + p_delay_ms::bigint * interval '1 millisecond', p_not_before::timestamptz);
  EXCEPTION WHEN data_exception THEN
    v_scheduled := 'infinity';
  END;
  IF v_scheduled > v_now + interval '3653 days' THEN
    RAISE EXCEPTION USING errcode = '22023', column = 'not_before',
      message = 'outledger: not_before must be a timestamp with time zone at most ten years ahead';
  END IF;

  -- Priority class 1 (normal): lane = class x 1024 + partition.
  v_lane := 1024 + (hashtextextended(coalesce(p_ordering_key, p_key), 0) & 1073741823) % v_partitions;
  INSERT INTO outbox.delivery AS d (key, endpoint_id, lane, type, ordering_key, payload, payload_ref, payload_sha256, payload_bytes,
    discovered_at, discovered_by, scheduled_at, correlation_id, traceparent, retention_days)
  VALUES (p_key, v_endpoint, v_lane, p_type, p_ordering_key, v_payload, p_payload_ref, v_sha, v_bytes,
    v_now, p_discovered_by, v_scheduled, p_correlation_id, p_traceparent, p_retention_days::int)
  ON CONFLICT (key) DO NOTHING
  RETURNING d.id INTO id;

  inserted := id IS NOT NULL;
  purged := false;
  IF NOT inserted THEN
    SELECT d.id,
           CASE WHEN d.endpoint_id <> v_endpoint THEN 'endpoint'
                WHEN d.type <> p_type THEN 'type'
                WHEN d.payload_ref IS DISTINCT FROM p_payload_ref AND d.erased_at IS NULL
                  OR d.payload_sha256 <> v_sha THEN 'payload' END
      INTO id, conflict FROM outbox.delivery d WHERE d.key = p_key;
    -- Gone since the insert looked: the purge of this very key has just committed.
    purged := NOT FOUND;
    RETURN NEXT; RETURN;
  END IF;

  -- A later statement than the insert: it also sees a tombstone whose purge the insert had to wait for.
  IF EXISTS (SELECT FROM outbox.tombstone t WHERE t.key_sha256 = sha256(convert_to(p_key, 'UTF8')) AND t.delete_after > v_now) THEN
    DELETE FROM outbox.delivery d WHERE d.id = enqueue.id;
    id := NULL; inserted := false; purged := true;
    RETURN NEXT; RETURN;
  END IF;

  v_next := v_scheduled;
  IF p_ordering_key IS NOT NULL AND EXISTS (
       SELECT FROM outbox.queue q WHERE q.endpoint_id = v_endpoint AND q.ordering_key = p_ordering_key) THEN
    v_next := 'infinity';
  END IF;
  INSERT INTO outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane, ordering_key)
  VALUES (enqueue.id, v_next, v_endpoint, v_lane, p_ordering_key);
  RETURN NEXT;
END
$fn$;
--> statement-breakpoint
COMMENT ON FUNCTION outbox.enqueue IS 'Write a delivery in the caller''s transaction. Never raises for a key that exists: inserted is false, conflict names what differs (endpoint, type, payload) and purged says that only a tombstone is left. Every argument is text.';
--> statement-breakpoint
CREATE VIEW outbox.deliveries AS
SELECT d.id, d.key, e.name AS endpoint, e.class, d.type, d.ordering_key,
  coalesce(r.ending,
    CASE WHEN q.blocked_reason IS NOT NULL THEN 'blocked'
         WHEN q.next_attempt_at = 'infinity' THEN 'parked'
         WHEN q.token IS NOT NULL AND q.next_attempt_at > statement_timestamp() THEN 'leased'
         ELSE 'waiting' END) AS state,
  d.discovered_at, d.discovered_by, d.scheduled_at,
  coalesce(r.attempts, q.attempts) AS attempts,
  a.http_status AS last_status, a.outcome AS last_outcome,
  CASE WHEN isfinite(q.next_attempt_at) AND (q.token IS NULL OR q.next_attempt_at <= statement_timestamp()) THEN q.next_attempt_at END AS next_attempt_at,
  CASE WHEN q.token IS NOT NULL THEN q.next_attempt_at END AS lease_until,
  coalesce(r.reason, q.blocked_reason) AS terminal_reason,
  coalesce(r.certainty,
    CASE WHEN EXISTS (SELECT FROM outbox.attempt t WHERE t.delivery_id = d.id AND t.outcome = 'delivered') THEN 'delivered'
         WHEN q.token IS NOT NULL OR q.maybe_applied_at IS NOT NULL THEN 'unknown'
         ELSE coalesce(a.outcome, 'not_attempted') END) AS certainty,
  d.payload_ref, d.payload_sha256, d.payload_bytes, d.erased_at, d.correlation_id, d.replay_of,
  r.ended_at, r.delete_after,
  CASE WHEN r.delivery_id IS NOT NULL THEN NULL
       WHEN q.blocked_reason IS NOT NULL THEN 'blocked: ' || q.blocked_reason
       WHEN q.next_attempt_at = 'infinity' THEN 'behind key ' || coalesce((
         SELECT h.key FROM outbox.queue o JOIN outbox.delivery h ON h.id = o.delivery_id
         WHERE o.endpoint_id = q.endpoint_id AND o.ordering_key = q.ordering_key AND o.delivery_id < q.delivery_id
         ORDER BY o.delivery_id LIMIT 1), '(none: due with the next sweep)')
       WHEN q.token IS NOT NULL AND q.next_attempt_at > statement_timestamp()
         THEN 'leased by ' || q.leased_by || ' for ' || date_trunc('second', q.next_attempt_at - statement_timestamp()) || ' more'
       WHEN e.paused_at IS NOT NULL THEN 'endpoint paused: ' || e.paused_reason
       WHEN e.backoff_until > statement_timestamp() THEN 'endpoint backing off until ' || e.backoff_until
       WHEN e.tripped_until > statement_timestamp() THEN 'endpoint tripped until ' || e.tripped_until
       WHEN q.next_attempt_at > statement_timestamp() THEN 'due in ' || date_trunc('second', q.next_attempt_at - statement_timestamp())
       ELSE CASE WHEN q.token IS NULL THEN 'due for ' ELSE 'lease of ' || q.leased_by || ' ran out, due again for ' END
         || date_trunc('second', statement_timestamp() - q.next_attempt_at)
         || CASE WHEN EXISTS (SELECT FROM outbox.poller p WHERE p.beat_at > statement_timestamp() - 3 * p.heartbeat_ms * interval '1 millisecond')
              THEN '' ELSE ', and no poller is alive' END
  END AS why_not_yet
FROM outbox.delivery d
JOIN outbox.endpoint e ON e.id = d.endpoint_id
LEFT JOIN outbox.queue q ON q.delivery_id = d.id
LEFT JOIN outbox.receipt r ON r.delivery_id = d.id
LEFT JOIN LATERAL (
  SELECT t.http_status, t.outcome FROM outbox.attempt t WHERE t.delivery_id = d.id ORDER BY t.number DESC LIMIT 1) a ON true;
--> statement-breakpoint
CREATE VIEW outbox.attempts AS
SELECT d.key, e.name AS endpoint, e.class, d.type, a.number, a.outcome, a.verdict, a.reason, a.http_status, a.phase, a.request_sent,
  a.target_host, a.started_at, a.finished_at,
  round(extract(epoch FROM a.finished_at - a.started_at) * 1000)::bigint AS took_ms,
  a.lag_ms, a.bytes_out, a.bytes_in, a.retry_after_ms, a.replayed, a.poller, a.excerpt, d.correlation_id, a.delivery_id
FROM outbox.attempt a
JOIN outbox.delivery d ON d.id = a.delivery_id
JOIN outbox.endpoint e ON e.id = d.endpoint_id;
--> statement-breakpoint
CREATE VIEW outbox.backlog AS
SELECT e.name AS endpoint, e.class,
  count(*) FILTER (WHERE isfinite(q.next_attempt_at) AND q.next_attempt_at <= statement_timestamp()) AS due,
  count(*) FILTER (WHERE q.token IS NOT NULL AND q.next_attempt_at > statement_timestamp()) AS leased,
  count(*) FILTER (WHERE q.token IS NULL AND isfinite(q.next_attempt_at) AND q.next_attempt_at > statement_timestamp()) AS scheduled,
  count(*) FILTER (WHERE q.next_attempt_at = 'infinity' AND q.blocked_reason IS NULL) AS parked,
  count(*) FILTER (WHERE q.blocked_reason IS NOT NULL) AS blocked,
  statement_timestamp() - min(q.next_attempt_at) FILTER (WHERE q.next_attempt_at <= statement_timestamp()) AS oldest_due_age
FROM outbox.endpoint e
LEFT JOIN outbox.queue q ON q.endpoint_id = e.id
WHERE e.removed_at IS NULL OR q.delivery_id IS NOT NULL
GROUP BY e.id;
--> statement-breakpoint
CREATE VIEW outbox.dead AS
SELECT d.key, e.name AS endpoint, e.class, d.type, r.ended_at, r.attempts, r.reason, r.certainty,
  r.certainty = 'unknown' AS maybe_applied, a.http_status AS last_status, d.correlation_id, r.delete_after, r.delivery_id
FROM outbox.receipt r
JOIN outbox.delivery d ON d.id = r.delivery_id
JOIN outbox.endpoint e ON e.id = d.endpoint_id
LEFT JOIN LATERAL (
  SELECT t.http_status FROM outbox.attempt t WHERE t.delivery_id = r.delivery_id ORDER BY t.number DESC LIMIT 1) a ON true
WHERE r.ending = 'dead';
--> statement-breakpoint
COMMENT ON VIEW outbox.deliveries IS 'One row per delivery: where it stands and, while it is open, why it is not delivered yet';
COMMENT ON COLUMN outbox.deliveries.id IS 'Number of the delivery';
COMMENT ON COLUMN outbox.deliveries.key IS 'Idempotency key, the same on every attempt';
COMMENT ON COLUMN outbox.deliveries.endpoint IS 'Name of the endpoint';
COMMENT ON COLUMN outbox.deliveries.class IS 'Kind of destination';
COMMENT ON COLUMN outbox.deliveries.type IS 'Event type';
COMMENT ON COLUMN outbox.deliveries.ordering_key IS 'Deliveries of one ordering key go out one after the other';
COMMENT ON COLUMN outbox.deliveries.state IS 'waiting, leased, parked (behind an earlier one of its ordering key), blocked (a dead head that keeps its place), delivered, dead or cancelled';
COMMENT ON COLUMN outbox.deliveries.discovered_at IS 'When the delivery was written';
COMMENT ON COLUMN outbox.deliveries.discovered_by IS 'app, or the reconciliation that found it missing';
COMMENT ON COLUMN outbox.deliveries.scheduled_at IS 'First schedule, never changed';
COMMENT ON COLUMN outbox.deliveries.attempts IS 'Attempts so far, the one in flight included';
COMMENT ON COLUMN outbox.deliveries.last_status IS 'HTTP status of the last recorded attempt';
COMMENT ON COLUMN outbox.deliveries.last_outcome IS 'Outcome of the last recorded attempt: delivered, not_applied, unknown or rejected';
COMMENT ON COLUMN outbox.deliveries.next_attempt_at IS 'When the next attempt is due; null while leased, parked or blocked';
COMMENT ON COLUMN outbox.deliveries.lease_until IS 'End of the lease; past: the lease ran out and the delivery is due again';
COMMENT ON COLUMN outbox.deliveries.terminal_reason IS 'Why it ended or is blocked';
COMMENT ON COLUMN outbox.deliveries.certainty IS 'Could the other side have applied it, over all attempts: not_attempted, delivered, unknown, not_applied or rejected';
COMMENT ON COLUMN outbox.deliveries.payload_ref IS 'Reference under which the app keeps the payload';
COMMENT ON COLUMN outbox.deliveries.payload_sha256 IS 'SHA-256 of the payload; stays after erasure';
COMMENT ON COLUMN outbox.deliveries.payload_bytes IS 'Length of the payload';
COMMENT ON COLUMN outbox.deliveries.erased_at IS 'When the payload was erased';
COMMENT ON COLUMN outbox.deliveries.correlation_id IS 'Given by the app, sent along';
COMMENT ON COLUMN outbox.deliveries.replay_of IS 'The delivery that this one sends again';
COMMENT ON COLUMN outbox.deliveries.ended_at IS 'When it ended';
COMMENT ON COLUMN outbox.deliveries.delete_after IS 'When the purge may delete it';
COMMENT ON COLUMN outbox.deliveries.why_not_yet IS 'While open: what it waits for';
COMMENT ON VIEW outbox.attempts IS 'One row per attempt: one request on the wire, or one that was lost';
COMMENT ON COLUMN outbox.attempts.key IS 'Idempotency key of the delivery';
COMMENT ON COLUMN outbox.attempts.endpoint IS 'Name of the endpoint';
COMMENT ON COLUMN outbox.attempts.class IS 'Kind of destination';
COMMENT ON COLUMN outbox.attempts.type IS 'Event type';
COMMENT ON COLUMN outbox.attempts.number IS '1, 2, 3 … within the delivery';
COMMENT ON COLUMN outbox.attempts.outcome IS 'What was observed: delivered, not_applied, unknown or rejected';
COMMENT ON COLUMN outbox.attempts.verdict IS 'What followed: delivered, retry, dead or block';
COMMENT ON COLUMN outbox.attempts.reason IS 'Why, in one word; null for a plain 2xx';
COMMENT ON COLUMN outbox.attempts.http_status IS 'Status of the response, if its headers were complete';
COMMENT ON COLUMN outbox.attempts.phase IS 'How far the request got: prepare, dns, connect, tls, request, response or done';
COMMENT ON COLUMN outbox.attempts.request_sent IS 'Were request bytes sent: yes, no, null = not known';
COMMENT ON COLUMN outbox.attempts.target_host IS 'Host and port of the URL';
COMMENT ON COLUMN outbox.attempts.started_at IS 'Start, on the clock of the database';
COMMENT ON COLUMN outbox.attempts.finished_at IS 'End, on the clock of the database';
COMMENT ON COLUMN outbox.attempts.took_ms IS 'Duration in milliseconds';
COMMENT ON COLUMN outbox.attempts.lag_ms IS 'Start of the lease after the scheduled time, in milliseconds';
COMMENT ON COLUMN outbox.attempts.bytes_out IS 'Bytes of the request body';
COMMENT ON COLUMN outbox.attempts.bytes_in IS 'Bytes read of the response body';
COMMENT ON COLUMN outbox.attempts.retry_after_ms IS 'What a Retry-After header asked for';
COMMENT ON COLUMN outbox.attempts.replayed IS 'The receiver answered from its record of this key';
COMMENT ON COLUMN outbox.attempts.poller IS 'Who made the attempt';
COMMENT ON COLUMN outbox.attempts.excerpt IS 'Part of the response body, where the endpoint asks for it';
COMMENT ON COLUMN outbox.attempts.correlation_id IS 'Given by the app, sent along';
COMMENT ON COLUMN outbox.attempts.delivery_id IS 'Number of the delivery';
COMMENT ON VIEW outbox.backlog IS 'Open work per endpoint';
COMMENT ON COLUMN outbox.backlog.endpoint IS 'Name of the endpoint';
COMMENT ON COLUMN outbox.backlog.class IS 'Kind of destination';
COMMENT ON COLUMN outbox.backlog.due IS 'Due now, run-out leases included';
COMMENT ON COLUMN outbox.backlog.leased IS 'Under a live lease';
COMMENT ON COLUMN outbox.backlog.scheduled IS 'Due later: first schedule or retry';
COMMENT ON COLUMN outbox.backlog.parked IS 'Behind an earlier delivery of their ordering key';
COMMENT ON COLUMN outbox.backlog.blocked IS 'Dead heads of an ordering key, waiting for a person';
COMMENT ON COLUMN outbox.backlog.oldest_due_age IS 'Age of the oldest due time';
COMMENT ON VIEW outbox.dead IS 'Deliveries that finally failed, and whether they may have been applied all the same';
COMMENT ON COLUMN outbox.dead.key IS 'Idempotency key';
COMMENT ON COLUMN outbox.dead.endpoint IS 'Name of the endpoint';
COMMENT ON COLUMN outbox.dead.class IS 'Kind of destination';
COMMENT ON COLUMN outbox.dead.type IS 'Event type';
COMMENT ON COLUMN outbox.dead.ended_at IS 'When it ended';
COMMENT ON COLUMN outbox.dead.attempts IS 'Attempts made';
COMMENT ON COLUMN outbox.dead.reason IS 'Why it is dead';
COMMENT ON COLUMN outbox.dead.certainty IS 'Could the other side have applied it, over all attempts';
COMMENT ON COLUMN outbox.dead.maybe_applied IS 'True: some attempt may have been applied, so this is not a known failure';
COMMENT ON COLUMN outbox.dead.last_status IS 'HTTP status of the last attempt';
COMMENT ON COLUMN outbox.dead.correlation_id IS 'Given by the app';
COMMENT ON COLUMN outbox.dead.delete_after IS 'When the purge may delete it';
COMMENT ON COLUMN outbox.dead.delivery_id IS 'Number of the delivery';
--> statement-breakpoint
-- Everything goes through the function and the views; nobody but the owner writes rows.
REVOKE ALL ON ALL TABLES IN SCHEMA outbox FROM PUBLIC;
--> statement-breakpoint
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA outbox FROM PUBLIC;
