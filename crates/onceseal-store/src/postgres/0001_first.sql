-- As on SQLite, what a row or event says is packed: no rule reads a column of
-- it. Text that is compared is COLLATE "C"; text that is kept is bytes, so that
-- no encoding and no NUL comes in its way. What foreign keys would check, the
-- audit does: they lock and read a row for each one written.

CREATE TABLE @.schema_migrations (
    id integer PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    applied_at bigint NOT NULL
);

CREATE TABLE @.tenants (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL UNIQUE,
    owner text COLLATE "C",
    tenant_id bytea NOT NULL UNIQUE CHECK (octet_length(tenant_id) = 16),
    blinding_key bytea NOT NULL CHECK (octet_length(blinding_key) = 32),
    created_at bigint NOT NULL,
    -- Copied from a file that is still the store.
    arriving boolean NOT NULL DEFAULT false
);

-- Numbers of streams, by the thousand: whoever makes one knows its number before.
CREATE SEQUENCE @.stream_blocks AS bigint MINVALUE 1;

CREATE TABLE @.streams (
    id bigint PRIMARY KEY,
    tenant integer NOT NULL,
    kind smallint NOT NULL,
    name bytea NOT NULL CHECK (octet_length(name) = 16),
    sequence bigint NOT NULL CHECK (sequence > 0),
    head bytea NOT NULL CHECK (octet_length(head) = 32),
    open bytea NOT NULL,
    private bytea NOT NULL,
    UNIQUE (tenant, kind, name)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE @.events (
    stream bigint NOT NULL,
    sequence bigint NOT NULL CHECK (sequence > 0),
    kind smallint NOT NULL,
    at bigint NOT NULL,
    command bytea NOT NULL CHECK (octet_length(command) = 16),
    part integer NOT NULL,
    of integer NOT NULL CHECK (part BETWEEN 1 AND of),
    refs bytea NOT NULL,
    data bytea NOT NULL,
    sealed bytea NOT NULL,
    salt bytea CHECK (octet_length(salt) = 32),
    seal bytea CHECK (octet_length(seal) = 32),
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    CHECK (salt IS NULL OR seal IS NOT NULL),
    -- The last word on who was first: a batch decided on a row that is no longer so
    -- fails here.
    PRIMARY KEY (stream, sequence)
);

-- The order of recording, for each tenant without a gap. Whoever holds the
-- sequencer's lock appends; what is committed without it waits in `unsequenced`.
CREATE TABLE @.log (
    tenant integer NOT NULL,
    position bigint NOT NULL CHECK (position > 0),
    stream bigint NOT NULL,
    sequence bigint NOT NULL,
    PRIMARY KEY (tenant, position),
    UNIQUE (stream, sequence)
);

-- A row for each commit: stream and sequence of its events, eight bytes each.
CREATE TABLE @.unsequenced (
    id bigint GENERATED ALWAYS AS IDENTITY,
    tenant integer NOT NULL,
    events bytea NOT NULL CHECK (octet_length(events) > 0 AND octet_length(events) % 16 = 0),
    PRIMARY KEY (tenant, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE @.payloads (
    stream bigint NOT NULL,
    sequence bigint NOT NULL,
    salt bytea NOT NULL CHECK (octet_length(salt) = 32),
    text bytea NOT NULL,
    PRIMARY KEY (stream, sequence)
);

-- Every way to find a stream or an event; computed by core, only kept here.
-- sequence 0 names the stream, otherwise the event.
CREATE TABLE @.keys (
    tenant integer NOT NULL,
    index smallint NOT NULL,
    key bytea NOT NULL,
    stream bigint NOT NULL,
    sequence bigint NOT NULL,
    PRIMARY KEY (tenant, index, key, stream)
) WITH (autovacuum_vacuum_scale_factor = 0.02);

-- Rows of callers, written in the transaction of a command of theirs: not part
-- of the journal, and never read by us.
CREATE TABLE @.own_rows (
    tenant integer NOT NULL,
    key text COLLATE "C" NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (tenant, key)
);

-- Who sweeps has a row meanwhile, until then at the latest: others leave the same
-- work to him, and nothing rests on it.
CREATE TABLE @.sweeps (
    tenant integer PRIMARY KEY,
    until bigint NOT NULL
);

-- What each transaction does, as functions: a session keeps their plans, which
-- cost more than the few rows they are for, without any statement being prepared
-- under a name, and a pooler may stand between. They move rows and decide
-- nothing. Rows are reached one by one through an index, also where nobody has
-- told the planner yet that a table is large. Each of their statements sees what
-- was committed when it began, as functions that are VOLATILE do.

CREATE FUNCTION @.load_streams(in_tenant integer, kinds smallint[], names bytea[])
RETURNS TABLE (
    kind smallint, name bytea, id bigint, sequence bigint, head bytea, open bytea, private bytea
)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN QUERY
    SELECT s.kind, s.name, s.id, s.sequence, s.head, s.open, s.private
    FROM unnest(kinds, names) AS wanted(kind, name)
    CROSS JOIN LATERAL (
        SELECT * FROM @.streams s
        WHERE s.tenant = in_tenant AND s.kind = wanted.kind AND s.name = wanted.name LIMIT 1
    ) AS s;
END
$$;

-- The keys of ranges in their order, of each so many at most.
CREATE FUNCTION @.find_keys(in_tenant integer, indexes smallint[], lows bytea[], highs bytea[], mosts bigint[])
RETURNS TABLE (n bigint, key bytea, kind smallint, name bytea)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN QUERY
    SELECT range.n, found.key, found.kind, found.name
    FROM unnest(indexes, lows, highs, mosts) WITH ORDINALITY AS range(index, low, high, most, n)
    CROSS JOIN LATERAL (
        SELECT k.key, k.stream, s.kind, s.name FROM @.keys k JOIN @.streams s ON s.id = k.stream
        WHERE k.tenant = in_tenant AND k.index = range.index AND k.key >= range.low AND k.key <= range.high
        ORDER BY k.key, k.stream LIMIT range.most
    ) AS found
    ORDER BY range.n, found.key, found.stream;
END
$$;

-- The newest event under a key.
CREATE FUNCTION @.find_event(in_tenant integer, in_index smallint, in_key bytea)
RETURNS TABLE (kind smallint, name bytea, sequence bigint)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN QUERY
    SELECT s.kind, s.name, k.sequence FROM @.keys k JOIN @.streams s ON s.id = k.stream
    WHERE k.tenant = in_tenant AND k.index = in_index AND k.key = in_key ORDER BY k.stream DESC LIMIT 1;
END
$$;

-- Texts beside events.
CREATE FUNCTION @.load_payloads(in_tenant integer, kinds smallint[], names bytea[], sequences bigint[])
RETURNS TABLE (kind smallint, name bytea, sequence bigint, salt bytea, text bytea)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN QUERY
    SELECT s.kind, s.name, p.sequence, p.salt, p.text
    FROM unnest(kinds, names, sequences) AS wanted(kind, name, sequence)
    CROSS JOIN LATERAL (
        SELECT * FROM @.streams s
        WHERE s.tenant = in_tenant AND s.kind = wanted.kind AND s.name = wanted.name LIMIT 1
    ) AS s
    CROSS JOIN LATERAL (
        SELECT * FROM @.payloads p WHERE p.stream = s.id AND p.sequence = wanted.sequence LIMIT 1
    ) AS p;
END
$$;

-- Waits for locks, then tries others; says of each of these whether it is held.
CREATE FUNCTION @.lock(waited bigint[], waited_alone boolean[], tried bigint[], tried_alone boolean[])
RETURNS boolean[]
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    PERFORM CASE WHEN alone THEN pg_advisory_xact_lock(number)::text
                 ELSE pg_advisory_xact_lock_shared(number)::text END
    FROM unnest(waited, waited_alone) AS lock(number, alone);
    RETURN ARRAY(
        SELECT CASE WHEN alone THEN pg_try_advisory_xact_lock(number)
                    ELSE pg_try_advisory_xact_lock_shared(number) END
        FROM unnest(tried, tried_alone) AS lock(number, alone));
END
$$;

-- The time, the schema's version, the tenant's id, the newest position of its log,
-- and what commits have left for the sequencer, up to so many.
CREATE FUNCTION @.facts(in_tenant integer, most bigint)
RETURNS TABLE (
    clock bigint, version bigint, id bytea, newest bigint, left_ids bigint[], left_events bytea[]
)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    clock := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    version := (SELECT max(m.id) FROM @.schema_migrations m);
    id := (SELECT t.tenant_id FROM @.tenants t WHERE t.id = in_tenant);
    newest := coalesce((SELECT l.position FROM @.log l WHERE l.tenant = in_tenant
                        ORDER BY l.position DESC LIMIT 1), 0);
    SELECT array_agg(u.id), array_agg(u.events) INTO left_ids, left_events FROM (
        SELECT u.id, u.events FROM @.unsequenced u WHERE u.tenant = in_tenant ORDER BY u.id LIMIT most
    ) AS u;
    RETURN NEXT;
END
$$;

-- Fails with OS001 where a row is not as it was read: then nothing is saved.
CREATE FUNCTION @.save(
    in_tenant integer,
    made bigint[], made_kinds smallint[], made_names bytea[], made_sequences bigint[], made_heads bytea[],
    made_open bytea[], made_private bytea[],
    moved bigint[], moved_before bigint[], moved_sequences bigint[], moved_heads bytea[],
    moved_open bytea[], moved_private bytea[],
    event_streams bigint[], event_sequences bigint[], event_kinds smallint[], event_at bigint[],
    event_commands bytea[], event_parts integer[], event_ofs integer[], event_refs bytea[], event_data bytea[],
    event_sealed bytea[], event_salts bytea[], event_seals bytea[], event_hashes bytea[],
    text_streams bigint[], text_sequences bigint[], text_salts bytea[], texts bytea[],
    gone_indexes smallint[], gone_keys bytea[], gone_streams bigint[],
    new_indexes smallint[], new_keys bytea[], new_streams bigint[], new_sequences bigint[],
    sequenced bigint[], newest bigint, log_streams bigint[], log_sequences bigint[],
    unsequenced bytea
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    changed bigint;
BEGIN
    IF cardinality(made) > 0 THEN
        INSERT INTO @.streams (id, tenant, kind, name, sequence, head, open, private)
        SELECT new.id, in_tenant, new.kind, new.name, new.sequence, new.head, new.open, new.private
        FROM unnest(made, made_kinds, made_names, made_sequences, made_heads, made_open, made_private)
             AS new(id, kind, name, sequence, head, open, private);
    END IF;
    IF cardinality(moved) > 0 THEN
        UPDATE @.streams AS s
        SET sequence = new.sequence, head = new.head, open = new.open, private = new.private
        FROM (
            SELECT new.*, old.ctid
            FROM unnest(moved, moved_before, moved_sequences, moved_heads, moved_open, moved_private)
                 AS new(id, before, sequence, head, open, private)
            CROSS JOIN LATERAL (
                SELECT s.ctid FROM @.streams s WHERE s.id = new.id AND s.sequence = new.before LIMIT 1
            ) AS old
        ) AS new
        WHERE s.ctid = new.ctid;
        GET DIAGNOSTICS changed = ROW_COUNT;
        IF changed <> cardinality(moved) THEN
            RAISE EXCEPTION 'a row is not as it was read' USING ERRCODE = 'OS001';
        END IF;
    END IF;
    IF cardinality(event_streams) > 0 THEN
        INSERT INTO @.events
            (stream, sequence, kind, at, command, part, of, refs, data, sealed, salt, seal, hash)
        SELECT * FROM unnest(
            event_streams, event_sequences, event_kinds, event_at, event_commands, event_parts, event_ofs,
            event_refs, event_data, event_sealed, event_salts, event_seals, event_hashes);
    END IF;
    IF cardinality(text_streams) > 0 THEN
        INSERT INTO @.payloads (stream, sequence, salt, text)
        SELECT * FROM unnest(text_streams, text_sequences, text_salts, texts);
    END IF;
    -- One that is missing is missed by an audit, and in nobody's way.
    IF cardinality(gone_streams) > 0 THEN
        DELETE FROM @.keys WHERE ctid = ANY(ARRAY(
            SELECT k.ctid FROM unnest(gone_indexes, gone_keys, gone_streams) AS old(index, key, stream)
            CROSS JOIN LATERAL (
                SELECT k.ctid FROM @.keys k
                WHERE k.tenant = in_tenant AND k.index = old.index AND k.key = old.key AND k.stream = old.stream
                LIMIT 1
            ) AS k));
    END IF;
    IF cardinality(new_streams) > 0 THEN
        INSERT INTO @.keys (tenant, index, key, stream, sequence)
        SELECT in_tenant, new.* FROM unnest(new_indexes, new_keys, new_streams, new_sequences) AS new;
    END IF;
    IF cardinality(sequenced) > 0 THEN
        DELETE FROM @.unsequenced WHERE tenant = in_tenant AND id = ANY(sequenced);
        GET DIAGNOSTICS changed = ROW_COUNT;
        IF changed <> cardinality(sequenced) THEN
            RAISE EXCEPTION 'a row is not as it was read' USING ERRCODE = 'OS001';
        END IF;
    END IF;
    IF cardinality(log_streams) > 0 THEN
        INSERT INTO @.log (tenant, position, stream, sequence)
        SELECT in_tenant, newest + new.n, new.stream, new.sequence
        FROM unnest(log_streams, log_sequences) WITH ORDINALITY AS new(stream, sequence, n);
    END IF;
    IF length(unsequenced) > 0 THEN
        INSERT INTO @.unsequenced (tenant, events) VALUES (in_tenant, unsequenced);
    END IF;
END
$$;
