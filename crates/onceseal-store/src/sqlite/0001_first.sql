-- Ids and hashes are blobs, times microseconds since 1970. What a row or event
-- says is packed (onceseal_core::pack): no rule reads a column of it.

CREATE TABLE schema_migrations (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    applied_at INTEGER NOT NULL
) STRICT;

-- Outside the fold: made with the tenant, never changed. Losing the key would
-- forget every effect. The owner is the account that the operating system proves.
CREATE TABLE tenants (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL UNIQUE,
    owner TEXT,
    tenant_id BLOB NOT NULL CHECK (length(tenant_id) = 16),
    blinding_key BLOB NOT NULL CHECK (length(blinding_key) = 32),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenants,
    kind INTEGER NOT NULL,
    name BLOB NOT NULL CHECK (length(name) = 16),
    sequence INTEGER NOT NULL CHECK (sequence > 0),
    head BLOB NOT NULL CHECK (length(head) = 32),
    open BLOB NOT NULL,
    private BLOB NOT NULL,
    UNIQUE (tenant, kind, name)
) STRICT;

-- The log: position is the order in which events were recorded. The hash of a
-- stream's previous event is not stored, it is that event's hash.
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL REFERENCES streams,
    sequence INTEGER NOT NULL CHECK (sequence > 0),
    kind INTEGER NOT NULL,
    at INTEGER NOT NULL,
    command BLOB NOT NULL CHECK (length(command) = 16),
    part INTEGER NOT NULL,
    of INTEGER NOT NULL CHECK (part BETWEEN 1 AND of),
    refs BLOB NOT NULL,
    data BLOB NOT NULL,
    sealed BLOB NOT NULL,
    salt BLOB CHECK (length(salt) = 32),
    seal BLOB CHECK (length(seal) = 32),
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    CHECK (salt IS NULL OR seal IS NOT NULL),
    UNIQUE (stream, sequence)
) STRICT;

CREATE TABLE payloads (
    event INTEGER PRIMARY KEY REFERENCES events,
    salt BLOB NOT NULL CHECK (length(salt) = 32),
    text TEXT NOT NULL
) STRICT;

-- Every way to find a stream or an event; computed by core, only kept here.
-- sequence 0 names the stream, otherwise the event.
CREATE TABLE keys (
    tenant INTEGER NOT NULL,
    "index" INTEGER NOT NULL,
    key BLOB NOT NULL,
    stream INTEGER NOT NULL REFERENCES streams,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (tenant, "index", key, stream)
) STRICT, WITHOUT ROWID;
