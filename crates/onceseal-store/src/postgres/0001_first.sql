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
    created_at bigint NOT NULL
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
