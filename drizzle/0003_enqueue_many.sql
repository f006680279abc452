-- Many messages in one statement a table; the checks of one message stand in one place.
-- Stable: it looks at the endpoint with the snapshot of its caller. Its caller also sets the search path.
CREATE FUNCTION outbox.check_message(
  p_at int, p_endpoint text, p_key text, p_type text, p_payload text, p_ordering_key text, p_delay_ms text, p_not_before text,
  p_correlation_id text, p_traceparent text, p_payload_ref text, p_retention_days text, p_discovered_by text,
  OUT payload json, OUT endpoint_id int, OUT partitions int, OUT not_before timestamptz)
LANGUAGE plpgsql STABLE
AS $fn$
DECLARE
  v_bytes int := octet_length(p_payload); v_removed timestamptz; v_field text; v_what text;
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

  IF v_field IS NULL THEN
    -- A parse error of Postgres would quote the payload; ours does not.
    BEGIN
      payload := p_payload::json;
      IF json_typeof(payload) NOT IN ('object', 'array') THEN
        v_field := 'payload'; v_what := format('is a JSON %s; it must be an object or an array', json_typeof(payload));
      END IF;
    EXCEPTION WHEN invalid_text_representation OR untranslatable_character OR statement_too_complex THEN
      v_field := 'payload'; v_what := format('of %s bytes is not valid JSON', v_bytes);
    END;
  END IF;

  IF v_field IS NULL AND p_not_before IS NOT NULL THEN
    BEGIN
      not_before := p_not_before::timestamptz;
    EXCEPTION WHEN data_exception THEN
      not_before := 'infinity';
    END;
    IF not_before > clock_timestamp() + interval '3653 days' THEN
      v_field := 'not_before'; v_what := 'must be a timestamp with time zone at most ten years ahead';
    END IF;
  END IF;

  IF v_field IS NULL THEN
    SELECT e.id, e.partitions, e.removed_at INTO endpoint_id, partitions, v_removed FROM outbox.endpoint e WHERE e.name = p_endpoint;
    IF endpoint_id IS NULL OR v_removed IS NOT NULL THEN
      v_field := 'endpoint';
      v_what := coalesce(quote_literal(left(p_endpoint, 200)), 'null')
        || CASE WHEN v_removed IS NULL THEN ' does not exist; create it with "outledger endpoint put"' ELSE ' was removed; enqueue to another one' END;
    END IF;
  END IF;

  IF v_field IS NOT NULL THEN
    RAISE EXCEPTION USING errcode = '22023', column = v_field,
      message = format('outledger: %s%s %s', 'message ' || p_at || ': ', v_field, v_what);
  END IF;
END
$fn$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION outbox.enqueue(
  p_endpoint text, p_key text, p_type text, p_payload text,
  p_ordering_key text DEFAULT NULL, p_delay_ms text DEFAULT NULL, p_not_before text DEFAULT NULL,
  p_correlation_id text DEFAULT NULL, p_traceparent text DEFAULT NULL, p_payload_ref text DEFAULT NULL,
  p_retention_days text DEFAULT NULL, p_discovered_by text DEFAULT 'app')
RETURNS TABLE (id bigint, inserted boolean, conflict text, purged boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $fn$
DECLARE
  v_checked record; v_endpoint int; v_lane int; v_sha bytea; v_scheduled timestamptz; v_next timestamptz; v_now timestamptz;
BEGIN
  v_checked := outbox.check_message(NULL, p_endpoint, p_key, p_type, p_payload, p_ordering_key, p_delay_ms, p_not_before,
    p_correlation_id, p_traceparent, p_payload_ref, p_retention_days, p_discovered_by);
  v_endpoint := v_checked.endpoint_id;
  v_sha := sha256(convert_to(p_payload, 'UTF8'));

  -- Before the identity value is drawn, so that within one ordering key the order of ids is the order of commits.
  IF p_ordering_key IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_ordering_key, v_endpoint));
  END IF;

  v_now := clock_timestamp();
  v_scheduled := greatest(v_now, v_now + p_delay_ms::bigint * interval '1 millisecond', v_checked.not_before);

  -- Priority class 1 (normal): lane = class x 1024 + partition.
  v_lane := 1024 + (hashtextextended(coalesce(p_ordering_key, p_key), 0) & 1073741823) % v_checked.partitions;
  INSERT INTO outbox.delivery AS d (key, endpoint_id, lane, type, ordering_key, payload, payload_ref, payload_sha256, payload_bytes,
    discovered_at, discovered_by, scheduled_at, correlation_id, traceparent, retention_days)
  VALUES (p_key, v_endpoint, v_lane, p_type, p_ordering_key, v_checked.payload, p_payload_ref, v_sha, octet_length(p_payload),
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
-- One plan for any number of messages, made once a session: planning cost 400 us a call. It may be made while a table is
-- small and stay: without seqscan it is right for the large one too.
CREATE FUNCTION outbox.enqueue_many(
  p_endpoints text[], p_keys text[], p_types text[], p_payloads text[],
  p_ordering_keys text[] DEFAULT NULL, p_delays_ms text[] DEFAULT NULL, p_not_befores text[] DEFAULT NULL,
  p_correlation_ids text[] DEFAULT NULL, p_traceparents text[] DEFAULT NULL, p_payload_refs text[] DEFAULT NULL,
  p_retentions_days text[] DEFAULT NULL, p_discovered_by text DEFAULT 'app')
RETURNS TABLE (number int, id bigint, inserted boolean, conflict text, purged boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
AS $fn$
DECLARE
  v_count int := coalesce(cardinality(p_keys), 0); v_bytes bigint := 0; v_checked record; v_lock bigint; v_now timestamptz;
  v_payloads json[] := '{}'; v_shas bytea[] := '{}'; v_endpoints int[] := '{}'; v_lanes int[] := '{}';
  v_locks bigint[] := '{}'; v_schedules timestamptz[] := '{}'; v_ids bigint[]; v_new bigint[]; v_gone bigint[];
  v_fresh boolean[] := '{}'; v_next int;
BEGIN
  IF v_count > 1000 THEN
    RAISE EXCEPTION USING errcode = '22023', column = 'messages',
      message = format('outledger: messages are %s; the limit is 1000 a call: call several times in the same transaction', v_count);
  END IF;
  IF EXISTS (SELECT FROM (VALUES (p_endpoints), (p_types), (p_payloads), (p_ordering_keys), (p_delays_ms), (p_not_befores),
       (p_correlation_ids), (p_traceparents), (p_payload_refs), (p_retentions_days)) AS given (list)
     WHERE cardinality(list) <> v_count OR array_ndims(list) > 1 OR array_lower(list, 1) <> 1)
     OR array_ndims(p_keys) > 1 OR array_lower(p_keys, 1) <> 1 THEN
    RAISE EXCEPTION USING errcode = '22023', column = 'messages', message = format('outledger: messages must be arrays of one length, %s like the keys', v_count);
  END IF;

  FOR i IN 1..v_count LOOP
    v_bytes := v_bytes + coalesce(octet_length(p_payloads[i]), 0);
    IF v_bytes > 16777216 THEN
      RAISE EXCEPTION USING errcode = '22023', column = 'messages',
        message = format('outledger: messages 1 to %s have payloads of %s bytes; the limit is 16777216 a call: call several times in the same transaction', i, v_bytes);
    END IF;
    v_checked := outbox.check_message(i, p_endpoints[i], p_keys[i], p_types[i], p_payloads[i], p_ordering_keys[i], p_delays_ms[i],
      p_not_befores[i], p_correlation_ids[i], p_traceparents[i], p_payload_refs[i], p_retentions_days[i], p_discovered_by);
    v_payloads[i] := v_checked.payload;
    v_shas[i] := sha256(convert_to(p_payloads[i], 'UTF8'));
    v_endpoints[i] := v_checked.endpoint_id;
    v_lanes[i] := 1024 + (hashtextextended(coalesce(p_ordering_keys[i], p_keys[i]), 0) & 1073741823) % v_checked.partitions;
    v_schedules[i] := v_checked.not_before;
    IF p_ordering_keys[i] IS NOT NULL THEN
      v_locks := v_locks || hashtextextended(p_ordering_keys[i], v_checked.endpoint_id);
    END IF;
  END LOOP;

  -- In one order, so that no two calls wait for each other; before the ids are drawn, as in outbox.enqueue.
  FOR v_lock IN SELECT DISTINCT l.l FROM unnest(v_locks) AS l (l) ORDER BY 1 LOOP
    PERFORM pg_advisory_xact_lock(v_lock);
  END LOOP;
  v_now := clock_timestamp();
  v_ids := ARRAY(SELECT nextval('outbox.delivery_id_seq') FROM generate_series(1, v_count));
  FOR i IN 1..v_count LOOP
    v_schedules[i] := greatest(v_now, v_now + p_delays_ms[i]::bigint * interval '1 millisecond', v_schedules[i]);
  END LOOP;

  -- Ids in the order given, rows in the order of their keys: two calls with the same keys wait for each other one way only.
  -- Only the places are sorted, and each row is made from the arrays: 16 MiB of payloads would spill into files.
  WITH new AS (
    INSERT INTO outbox.delivery AS d (id, key, endpoint_id, lane, type, ordering_key, payload, payload_ref, payload_sha256, payload_bytes,
      discovered_at, discovered_by, scheduled_at, correlation_id, traceparent, retention_days)
    OVERRIDING SYSTEM VALUE
    SELECT v_ids[i], p_keys[i], v_endpoints[i], v_lanes[i], p_types[i], p_ordering_keys[i], v_payloads[i], p_payload_refs[i], v_shas[i],
      octet_length(p_payloads[i]), v_now, p_discovered_by, v_schedules[i], p_correlation_ids[i], p_traceparents[i], p_retentions_days[i]::int
    FROM (SELECT u.i::int FROM unnest(p_keys) WITH ORDINALITY AS u (key, i) ORDER BY u.key COLLATE "C", u.i) AS place (i)
    ON CONFLICT (key) DO NOTHING
    RETURNING d.id)
  SELECT coalesce(array_agg(n.id ORDER BY n.id), '{}') INTO v_new FROM new n;

  -- A later statement than the insert: it also sees a tombstone whose purge the insert had to wait for.
  v_gone := ARRAY(
    SELECT g.id FROM unnest(v_ids, p_keys) AS g (id, key)
    WHERE EXISTS (SELECT FROM outbox.tombstone t WHERE t.key_sha256 = sha256(convert_to(g.key, 'UTF8')) AND t.delete_after > v_now OFFSET 0));
  IF v_gone && v_new THEN
    DELETE FROM outbox.delivery d WHERE d.id = ANY (v_gone);
    v_new := ARRAY(SELECT n.id FROM unnest(v_new) AS n (id) WHERE n.id <> ALL (v_gone) ORDER BY n.id);
  END IF;
  -- Both ascend.
  v_next := 1;
  FOR i IN 1..v_count LOOP
    v_fresh[i] := v_ids[i] IS NOT DISTINCT FROM v_new[v_next];
    v_next := v_next + v_fresh[i]::int;
  END LOOP;

  INSERT INTO outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane, ordering_key)
  SELECT g.id,
    CASE WHEN g.ordering_key IS NOT NULL
          AND (row_number() OVER (PARTITION BY g.endpoint_id, g.ordering_key ORDER BY g.id) > 1
            OR EXISTS (SELECT FROM outbox.queue q WHERE q.endpoint_id = g.endpoint_id AND q.ordering_key = g.ordering_key OFFSET 0))
         THEN 'infinity' ELSE g.scheduled_at END,
    g.endpoint_id, g.lane, g.ordering_key
  FROM unnest(v_ids, v_endpoints, v_lanes, p_ordering_keys, v_schedules, v_fresh) AS g (id, endpoint_id, lane, ordering_key, scheduled_at, fresh)
  WHERE g.fresh
  ORDER BY g.id;

  RETURN QUERY
  SELECT g.number::int, CASE WHEN g.fresh THEN g.id ELSE d.id END, g.fresh, d.conflict, NOT g.fresh AND d.id IS NULL
  FROM unnest(v_ids, p_keys, v_endpoints, p_types, p_payload_refs, v_shas, v_fresh)
    WITH ORDINALITY AS g (id, key, endpoint_id, type, payload_ref, sha, fresh, number)
  LEFT JOIN LATERAL (
    SELECT o.id,
           CASE WHEN o.endpoint_id <> g.endpoint_id THEN 'endpoint'
                WHEN o.type <> g.type THEN 'type'
                WHEN o.payload_ref IS DISTINCT FROM g.payload_ref AND o.erased_at IS NULL
                  OR o.payload_sha256 <> g.sha THEN 'payload' END AS conflict
    FROM outbox.delivery o WHERE NOT g.fresh AND o.key = g.key OFFSET 0) AS d ON true
  ORDER BY g.number;
END
$fn$;
--> statement-breakpoint
COMMENT ON FUNCTION outbox.enqueue_many IS 'outbox.enqueue for many messages: arrays of one length, at most 1000 messages with 16 MiB of payloads. Rows come back in the order given; deliveries of one ordering key keep that order. Never raises for a key that exists; a message that is wrong fails the whole call.';
--> statement-breakpoint
COMMENT ON FUNCTION outbox.check_message IS 'Internal: raises 22023 for a message that is wrong, with the field as its column';
--> statement-breakpoint
REVOKE ALL ON FUNCTION outbox.check_message, outbox.enqueue_many FROM PUBLIC;
