-- The view as it was, but that what belongs to one delivery is looked up for that one alone: EXISTS became one scan of all attempts as
-- soon as an open delivery was among the newest, and a queue believed empty was read whole for each delivery.
CREATE OR REPLACE VIEW outbox.deliveries AS
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
    CASE WHEN (SELECT true FROM outbox.attempt t WHERE t.delivery_id = d.id AND t.outcome = 'delivered' LIMIT 1) THEN 'delivered'
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
       WHEN e.tripped_until IS NOT NULL THEN 'endpoint tripped: one delivery at a time probes it'
       WHEN q.next_attempt_at > statement_timestamp() THEN 'due in ' || date_trunc('second', q.next_attempt_at - statement_timestamp())
       ELSE CASE WHEN q.token IS NULL THEN 'due for ' ELSE 'lease of ' || q.leased_by || ' ran out, due again for ' END
         || date_trunc('second', statement_timestamp() - q.next_attempt_at)
         || CASE WHEN EXISTS (SELECT FROM outbox.poller p WHERE p.beat_at > statement_timestamp() - 3 * p.heartbeat_ms * interval '1 millisecond')
              THEN '' ELSE ', and no poller is alive' END
  END AS why_not_yet
FROM outbox.delivery d
JOIN outbox.endpoint e ON e.id = d.endpoint_id
LEFT JOIN outbox.receipt r ON r.delivery_id = d.id
LEFT JOIN LATERAL (
  SELECT q.delivery_id, q.endpoint_id, q.ordering_key, q.next_attempt_at, q.token, q.leased_by, q.attempts, q.maybe_applied_at, q.blocked_reason
  FROM outbox.queue q WHERE q.delivery_id = d.id AND r.delivery_id IS NULL LIMIT 1) q ON true
LEFT JOIN LATERAL (
  SELECT t.http_status, t.outcome FROM outbox.attempt t WHERE t.delivery_id = d.id ORDER BY t.number DESC LIMIT 1) a ON true;
