//! Every statement, in one place. `@` stands for the schema.
//!
//! None depends on the session: each names its schema, and none is prepared
//! under a name.

/// A statement's text with the schema in it.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)*) => {
        /// The statements of one schema.
        #[derive(Debug)]
        pub(super) struct Statements {
            $($(#[$doc])* pub(super) $name: String,)*
        }

        impl Statements {
            pub(super) fn new(schema: &str) -> Statements {
                Statements { $($name: in_schema($sql, schema),)* }
            }

            #[cfg(test)]
            fn all(&self) -> Vec<(&'static str, &str)> {
                vec![$((stringify!($name), self.$name.as_str()),)*]
            }
        }
    };
}

/// A text with `@` replaced by the schema's name, quoted.
pub(super) fn in_schema(sql: &str, schema: &str) -> String {
    sql.replace('@', &format!("\"{schema}\""))
}

/// What begins a transaction that writes: whatever the server's settings are. What it
/// does are functions with settings of their own, or goes by a whole primary key.
pub(super) const BEGIN: &str = "\
    BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = '2s'; \
    SET LOCAL statement_timeout = '5s'; SET LOCAL idle_in_transaction_session_timeout = '5s'; \
    SET LOCAL synchronous_commit = on";

/// What begins a transaction that only reads, at one moment. Rows are reached one by
/// one through their index: what a statement wants is few of many, also where nobody
/// has told the planner yet that they are many.
pub(super) const BEGIN_READING: &str = "\
    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '60s'; \
    SET LOCAL idle_in_transaction_session_timeout = '60s'; \
    SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; \
    SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off";

/// What goes on in it to look at every row.
pub(super) const READING_ALL: &str = "\
    SET LOCAL statement_timeout = 0; SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; \
    SET LOCAL enable_mergejoin = on; SET LOCAL enable_bitmapscan = on";

/// Tells whoever listens that this tenant's log has grown. Nothing is lost with it, so
/// no disk is waited for.
pub(super) fn announcement(schema: &str, tenant: i32) -> String {
    let sql = "BEGIN; SET LOCAL synchronous_commit = off; NOTIFY @, '$'; COMMIT";
    in_schema(sql, schema).replace('$', &tenant.to_string())
}

/// Listens for that.
pub(super) fn listening(schema: &str) -> String {
    in_schema("LISTEN @", schema)
}

/// Waits for locks, in this order.
pub(super) const WAIT_FOR_LOCKS: &str = "\
    SELECT CASE WHEN alone THEN pg_advisory_xact_lock(number)::text \
                ELSE pg_advisory_xact_lock_shared(number)::text END \
    FROM unnest($1::int8[], $2::bool[]) AS lock(number, alone)";

/// The size of all tables of a schema, their indexes with them.
pub(super) const BYTES: &str = "\
    SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::int8 FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'";

/// Who follows a server byte by byte, and so may take its place: not who keeps a
/// copy or its log, and not a subscriber, which has a database. What another role's
/// session is called, and whether it has a database, every role may see.
/// Since when the server runs: another one that has taken its place says something else.
macro_rules! since {
    () => {
        "(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8"
    };
}

macro_rules! standbys {
    () => {
        "FROM pg_catalog.pg_stat_replication r JOIN pg_catalog.pg_stat_activity a USING (pid) \
         WHERE a.datid IS NULL AND r.application_name NOT IN ('pg_basebackup', 'pg_receivewal')"
    };
}

/// What a server says of itself.
pub(super) const SERVER: &str = concat!(
    "SELECT current_setting('server_version_num')::int8, current_setting('fsync'), \
            current_setting('full_page_writes'), current_setting('server_encoding'), \
            current_setting('synchronous_standby_names'), \
            (SELECT coalesce(array_agg(r.application_name ORDER BY r.application_name), '{}') ",
    standbys!(),
    "), (extract(epoch FROM clock_timestamp()) * 1000000)::int8, \
            (SELECT coalesce(array_agg(application_name), '{}') FROM pg_catalog.pg_stat_replication), ",
    since!()
);

/// Whether the role may make tables in this schema, and it where it is not there.
pub(super) const MAY_MAKE: &str = "\
    SELECT COALESCE((SELECT has_schema_privilege(n.oid, 'CREATE') FROM pg_namespace n WHERE n.nspname = $1), \
                    has_database_privilege(current_database(), 'CREATE'))";

/// Something that is on the disks of all that commits wait for once it is committed, and
/// so is whatever was visible before: a server that comes back shows what it has, be it
/// on a standby or not. It is read by nobody.
pub(super) const SETTLE: &str = "SELECT pg_logical_emit_message(true, 'onceseal', '')";

/// Tables and sequences of a schema that the role may not look into.
pub(super) const HIDDEN: &str = "\
    SELECT c.relname::text FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 \
    AND CASE c.relkind WHEN 'r' THEN NOT has_table_privilege(c.oid, 'SELECT') \
                       WHEN 'S' THEN NOT has_sequence_privilege(c.oid, 'SELECT') ELSE false END \
    ORDER BY c.relname";

/// Of these rights, by kind and name of what they are on, those that the role lacks,
/// with the name of that and its own as they are written. What is not there is not
/// lacked. Numbers are given to whoever may use a sequence or update it.
pub(super) const LACKING: &str = "\
    SELECT w.kind, w.right, \
           concat_ws('.', quote_ident(n.nspname), CASE WHEN w.kind <> 'SCHEMA' THEN quote_ident(w.name) END), \
           quote_ident(current_user) \
    FROM unnest($2::text[], $3::text[], $4::text[]) AS w(kind, name, \"right\") \
    JOIN pg_catalog.pg_namespace n ON n.nspname = $1 \
    LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.name \
              AND c.relkind = CASE w.kind WHEN 'TABLE' THEN 'r' WHEN 'SEQUENCE' THEN 'S' END \
    LEFT JOIN pg_catalog.pg_proc p ON p.pronamespace = n.oid AND p.proname = w.name AND w.kind = 'FUNCTION' \
    WHERE CASE w.kind WHEN 'SCHEMA' THEN NOT has_schema_privilege(n.oid, w.right) \
                      WHEN 'TABLE' THEN NOT has_table_privilege(c.oid, w.right) \
                      WHEN 'SEQUENCE' THEN NOT has_sequence_privilege(c.oid, 'USAGE, UPDATE') \
                      ELSE NOT has_function_privilege(p.oid, w.right) END \
    ORDER BY w.kind, w.right, w.name";

/// A server's clock.
pub(super) const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";

/// The standbys of a server: what each is called, and how many bytes and microseconds
/// it is behind with what it has on its disk. Only some roles may see how far.
pub(super) const STANDBYS: &str = concat!(
    "SELECT r.application_name, pg_wal_lsn_diff(pg_current_wal_flush_lsn(), r.flush_lsn)::int8, \
            (extract(epoch FROM r.flush_lag) * 1000000)::int8 ",
    standbys!(),
    " ORDER BY r.application_name, r.pid"
);

/// Advisory locks: how many are held, for how many locks there is room, how many
/// sessions wait that hold this number or are to have it, and for how long the first
/// of those whose statement the role may see.
pub(super) const LOCKS: &str = "\
    WITH advisory AS MATERIALIZED ( \
        SELECT l.pid, l.granted, l.database = d.oid AND l.objsubid = 1 \
               AND ((l.classid::int8 << 32) | l.objid::int8) = $1 AS is_ours \
        FROM pg_catalog.pg_locks l, pg_catalog.pg_database d \
        WHERE l.locktype = 'advisory' AND d.datname = current_database()), \
    waiting AS ( \
        SELECT DISTINCT w.pid FROM advisory w WHERE NOT w.granted \
        AND EXISTS (SELECT FROM advisory o WHERE o.pid = w.pid AND o.is_ours)) \
    SELECT (SELECT count(*) FROM advisory WHERE granted), \
           current_setting('max_locks_per_transaction')::int8 \
           * (current_setting('max_connections')::int8 + current_setting('max_prepared_transactions')::int8), \
           (SELECT count(*) FROM waiting), \
           (SELECT (extract(epoch FROM max(clock_timestamp() - a.query_start)) * 1000000)::int8 \
            FROM pg_catalog.pg_stat_activity a JOIN waiting USING (pid))";

/// Connections that count against the most there may be, and that most. What kind a
/// session is of that the role may not look into is not known: most are clients'.
pub(super) const CONNECTIONS: &str = "\
    SELECT (SELECT count(*) FROM pg_catalog.pg_stat_activity \
            WHERE datid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend'), \
           current_setting('max_connections')::int8";

/// Columns of an event, in the order `columns::event` reads them.
macro_rules! event {
    ($from:literal) => {
        concat!(
            "SELECT coalesce(l.position, 9223372036854775807), e.sequence, e.kind, e.at, e.command, e.part, e.of, e.refs, e.data, e.sealed, \
                    e.salt, e.seal, e.hash, s.kind, s.name ",
            $from
        )
    };
}

/// An integer of eight bytes among those that wait for the log.
macro_rules! eight {
    ($at:literal) => {
        concat!("('x' || encode(substr(u.events, ", $at, ", 8), 'hex'))::bit(64)::int8")
    };
}

/// Places that wait for the log, as integers, one row for each.
macro_rules! waiting {
    () => {
        concat!(
            "(SELECT u.tenant, u.id, ",
            eight!("n"),
            " AS stream, ",
            eight!("n + 8"),
            " AS sequence FROM @.unsequenced u, generate_series(1, length(u.events) - 15, 16) AS n) AS w"
        )
    };
}

/// Rows of a table that are of no tenant.
macro_rules! of_no_tenant {
    ($table:literal) => {
        concat!(
            "SELECT count(*) FROM @.",
            $table,
            " x WHERE NOT EXISTS (SELECT FROM @.tenants t WHERE t.id = x.tenant)"
        )
    };
}

/// The number that a sequence gave last, and the highest there is.
macro_rules! given {
    ($sequence:literal, $table:literal) => {
        concat!(
            "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END, \
                    (SELECT coalesce(max(id), 0)::int8 FROM @.",
            $table,
            ") FROM @.",
            $sequence
        )
    };
}

/// Keys of one index of a tenant.
macro_rules! keys {
    ($rest:literal) => {
        concat!(
            "SELECT k.key, s.kind, s.name, k.sequence FROM @.keys k JOIN @.streams s ON s.id = k.stream \
             WHERE k.tenant = $1 AND k.index = $2 ",
            $rest
        )
    };
}

statements! {
    /// Waits for locks, then tries others.
    lock = "SELECT @.lock($1, $2, $3, $4)";
    /// Of each transaction: the time, the schema's version, the tenant's id, the newest
    /// position of its log and what is left for it, as they are once the locks are held;
    /// and since when the server runs.
    facts = concat!("SELECT f.*, ", since!(), " FROM @.facts($1, $2) AS f");
    /// What commits have left for the sequencer.
    unsequenced = "SELECT id, events FROM @.unsequenced WHERE tenant = $1 ORDER BY id LIMIT $2";
    /// How many commits have left something for the sequencer, up to so many.
    count_unsequenced = "SELECT count(*) FROM (SELECT FROM @.unsequenced WHERE tenant =
                         (SELECT id FROM @.tenants WHERE tenant = $1) LIMIT $2) AS few";
    /// How many events are left for the sequencer that have their place already, of those
    /// that come next.
    stuck = concat!("SELECT count(*) FROM (SELECT u.events FROM @.unsequenced u WHERE u.tenant =
                         (SELECT id FROM @.tenants WHERE tenant = $1) ORDER BY u.id LIMIT $2) AS u
                     CROSS JOIN LATERAL generate_series(1, length(u.events) - 15, 16) AS n
                     CROSS JOIN LATERAL (SELECT FROM @.log l
                         WHERE l.stream = ", eight!("n"), " AND l.sequence = ", eight!("n + 8"), " LIMIT 1) AS l");
    /// Rows of streams.
    streams = "SELECT * FROM @.load_streams($1, $2, $3)";
    /// Ranges of keys.
    ranges = "SELECT * FROM @.find_keys($1, $2, $3, $4, $5)";
    /// Texts beside events.
    payloads = "SELECT * FROM @.load_payloads($1, $2, $3, $4)";
    /// The newest event under a key.
    event_of_key = "SELECT * FROM @.find_event($1, $2, $3)";
    /// A caller's own row.
    own = "SELECT value FROM @.own_rows WHERE tenant = $1 AND key = $2";
    /// The next thousand numbers of streams, and the highest that a stream had before.
    block = "SELECT nextval('@.stream_blocks'),
                    coalesce((SELECT id FROM @.streams ORDER BY id DESC LIMIT 1), 0)";

    /// Everything that a commit changes but a caller's own rows.
    save = "SELECT @.save($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
            $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29,
            $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43)";
    /// A caller's own rows.
    put_own = "INSERT INTO @.own_rows (tenant, key, value) SELECT $1, * FROM unnest($2::text[], $3::bytea[])
               ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value";
    /// A caller's own rows that are no more.
    delete_own = "DELETE FROM @.own_rows WHERE tenant = $1 AND key = ANY($2)";
    /// The command that recorded an event, and the event's hash.
    recorded = "SELECT command, hash FROM @.events WHERE stream = $1 AND sequence = $2";

    /// Takes the turn to sweep for so long, unless another has it. An end beyond that is
    /// of a clock that has gone back.
    take_sweep = "INSERT INTO @.sweeps AS s (tenant, until)
                  VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000000)::int8 + $2)
                  ON CONFLICT (tenant) DO UPDATE SET until = excluded.until
                  WHERE s.until NOT BETWEEN excluded.until - $2 AND excluded.until RETURNING until";
    /// Gives it up.
    end_sweep = "DELETE FROM @.sweeps WHERE tenant = $1 AND until = $2";

    /// The tenant of a name.
    tenant = "SELECT id, tenant_id, blinding_key, owner, arriving FROM @.tenants WHERE tenant = $1";
    /// A new tenant.
    insert_tenant = "INSERT INTO @.tenants (tenant, owner, tenant_id, blinding_key, created_at)
                     VALUES ($1, $2, $3, $4, $5) RETURNING id";
    /// A tenant that is copied from a file.
    insert_arriving = "INSERT INTO @.tenants (tenant, owner, tenant_id, blinding_key, created_at, arriving)
                       VALUES ($1, $2, $3, $4, $5, true) RETURNING id";
    /// What was copied of a tenant before, by whoever did not come to the end of it.
    forget_arriving = "WITH gone AS (DELETE FROM @.tenants WHERE tenant_id = $1 AND arriving RETURNING id),
                       streams AS (DELETE FROM @.streams s USING gone WHERE s.tenant = gone.id RETURNING s.id),
                       events AS (DELETE FROM @.events e USING streams WHERE e.stream = streams.id),
                       payloads AS (DELETE FROM @.payloads p USING streams WHERE p.stream = streams.id),
                       log AS (DELETE FROM @.log l USING gone WHERE l.tenant = gone.id),
                       keys AS (DELETE FROM @.keys k USING gone WHERE k.tenant = gone.id),
                       own_rows AS (DELETE FROM @.own_rows o USING gone WHERE o.tenant = gone.id)
                       SELECT id FROM gone";
    /// Tenants whose file is the store no longer.
    arrive = "UPDATE @.tenants SET arriving = false WHERE tenant_id = ANY($1) AND arriving RETURNING tenant";
    /// Anything recorded, for whatever tenant.
    any_stream = "SELECT id FROM @.streams LIMIT 1";
    /// The migrations that were applied.
    migrations = "SELECT m.id::int8, m.name FROM @.schema_migrations m ORDER BY m.id";
    /// A migration that was applied.
    insert_migration = "INSERT INTO @.schema_migrations (id, name, applied_at) VALUES ($1, $2, $3)";

    /// A stream's number.
    stream_id = "SELECT id FROM @.streams WHERE tenant = $1 AND kind = $2 AND name = $3";
    /// A stream's row.
    stream = "SELECT sequence, head, open, private FROM @.streams WHERE tenant = $1 AND kind = $2 AND name = $3";
    /// The tenant's streams, one after another.
    all_streams = "SELECT kind, name FROM @.streams WHERE tenant = $1 AND (kind, name) > ($2, $3)
                   ORDER BY kind, name LIMIT $4";
    /// A stream's events; those that the sequencer has not met yet stand at the
    /// highest integer.
    events = event!("FROM @.events e JOIN @.streams s ON s.id = e.stream
                     LEFT JOIN @.log l ON l.stream = e.stream AND l.sequence = e.sequence
                     WHERE e.stream = (SELECT id FROM @.streams WHERE tenant = $1 AND kind = $2 AND name = $3)
                           AND e.sequence >= $4 ORDER BY e.sequence LIMIT $5");
    /// The tenant's events in the order of the log.
    log = event!("FROM @.log l JOIN @.events e ON e.stream = l.stream AND e.sequence = l.sequence
                  JOIN @.streams s ON s.id = e.stream
                  WHERE l.tenant = $1 AND l.position > $2 ORDER BY l.position LIMIT $3");
    /// The newest position.
    newest = "SELECT position FROM @.log WHERE tenant = $1 ORDER BY position DESC LIMIT 1";
    /// The text beside an event.
    payload = "SELECT p.salt, p.text FROM @.streams s JOIN @.payloads p ON p.stream = s.id
               WHERE s.tenant = $1 AND s.kind = $2 AND s.name = $3 AND p.sequence = $4";
    /// The first page of keys, oldest first.
    oldest = keys!("AND k.key BETWEEN $3 AND $4 ORDER BY k.key, k.stream LIMIT $5");
    /// What comes after a key and stream, oldest first.
    oldest_after = keys!("AND (k.key, k.stream) > ($3, $6) AND k.key <= $4 ORDER BY k.key, k.stream LIMIT $5");
    /// The first page of keys, newest first.
    newest_first = keys!("AND k.key BETWEEN $3 AND $4 ORDER BY k.key DESC, k.stream DESC LIMIT $5");
    /// What comes after a key and stream, newest first.
    newest_after = keys!("AND (k.key, k.stream) < ($4, $6) AND k.key >= $3 ORDER BY k.key DESC, k.stream DESC LIMIT $5");
    /// How much there is.
    counts = "SELECT (SELECT count(*) FROM @.streams WHERE tenant = $1),
                     (SELECT count(*) FROM @.events e JOIN @.streams s ON s.id = e.stream WHERE s.tenant = $1),
                     (SELECT count(*) FROM @.keys WHERE tenant = $1),
                     (SELECT count(*) FROM @.payloads p JOIN @.streams s ON s.id = p.stream WHERE s.tenant = $1)";

    /// Events of no stream.
    stray_events = "SELECT count(*) FROM @.events e
                    WHERE NOT EXISTS (SELECT FROM @.streams s WHERE s.id = e.stream)";
    /// Texts of no event.
    stray_payloads = "SELECT count(*) FROM @.payloads p WHERE NOT EXISTS
                      (SELECT FROM @.events e WHERE e.stream = p.stream AND e.sequence = p.sequence)";
    /// Keys of no stream.
    stray_keys = "SELECT count(*) FROM @.keys k
                  WHERE NOT EXISTS (SELECT FROM @.streams s WHERE s.id = k.stream)";
    /// Places of no event.
    stray_log = "SELECT count(*) FROM @.log l WHERE NOT EXISTS
                 (SELECT FROM @.events e WHERE e.stream = l.stream AND e.sequence = l.sequence)";

    /// Streams of no tenant.
    stray_tenants_streams = of_no_tenant!("streams");
    /// Keys of no tenant.
    stray_tenants_keys = of_no_tenant!("keys");
    /// Places of no tenant.
    stray_tenants_log = of_no_tenant!("log");
    /// What commits of no tenant have left for the sequencer.
    stray_tenants_unsequenced = of_no_tenant!("unsequenced");
    /// Callers' own rows of no tenant.
    stray_tenants_own_rows = of_no_tenant!("own_rows");
    /// Turns to sweep for no tenant.
    stray_tenants_sweeps = of_no_tenant!("sweeps");
    /// What is left for the sequencer and says nothing, with the first of it.
    stray_misshapen = "SELECT count(*), min(id) FROM @.unsequenced
                       WHERE length(events) = 0 OR length(events) % 16 <> 0";
    /// Places that are left for the sequencer, of no event of their tenant.
    stray_absent = concat!("SELECT count(*), min(w.id) FROM ", waiting!(), " WHERE NOT EXISTS
                    (SELECT FROM @.events e JOIN @.streams s ON s.id = e.stream
                     WHERE e.stream = w.stream AND e.sequence = w.sequence AND s.tenant = w.tenant)");
    /// Places that are left for the sequencer, of events that have one.
    stray_placed = concat!("SELECT count(*), min(w.id) FROM ", waiting!(), " WHERE EXISTS
                    (SELECT FROM @.log l WHERE l.stream = w.stream AND l.sequence = w.sequence)");
    /// Events that are left for the sequencer more than once.
    stray_repeated = concat!("SELECT count(*), min(again.id) FROM (SELECT min(w.id) AS id FROM ", waiting!(),
                      " GROUP BY w.stream, w.sequence HAVING count(*) > 1) AS again");
    /// Events that have no place, and are not left for the sequencer.
    stray_unplaced = concat!("SELECT count(*) FROM @.events e JOIN @.streams s ON s.id = e.stream
                      WHERE NOT EXISTS (SELECT FROM @.log l
                          WHERE l.stream = e.stream AND l.sequence = e.sequence AND l.tenant = s.tenant)
                      AND NOT EXISTS (SELECT FROM ", waiting!(), "
                          WHERE w.stream = e.stream AND w.sequence = e.sequence AND w.tenant = s.tenant)");
    /// Numbers of blocks of streams.
    given_blocks = given!("stream_blocks", "streams");
    /// Numbers of tenants.
    given_tenants = given!("tenants_id_seq", "tenants");
    /// Numbers of what is left for the sequencer.
    given_unsequenced = given!("unsequenced_id_seq", "unsequenced");

    /// The tenant's own owner.
    owner = "SELECT owner FROM @.tenants WHERE id = $1";
    /// Numbers of streams, in their order: the sum keeps the planner from the index of
    /// their names.
    ordinals = "SELECT id FROM @.streams WHERE tenant + 0 = $1 AND id > $2 ORDER BY id LIMIT $3";
    /// All of some streams, as they are gathered.
    wholes = "SELECT CASE WHEN e.stream IS NOT NULL THEN coalesce(l.position, 9223372036854775807) END,
                     e.sequence, e.kind, e.at, e.command, e.part, e.of, e.refs,
                     e.data, e.sealed, e.salt, e.seal, e.hash, s.kind, s.name,
                     s.id, s.sequence, s.head, s.open, s.private, p.salt, p.text
              FROM @.streams s
              LEFT JOIN @.events e ON e.stream = s.id
                   AND e.sequence > (CASE WHEN s.id = $2 THEN $4 ELSE -9223372036854775808 END)
              LEFT JOIN @.log l ON l.stream = e.stream AND l.sequence = e.sequence
              LEFT JOIN @.payloads p ON p.stream = e.stream AND p.sequence = e.sequence
              WHERE s.tenant = $1 AND s.id BETWEEN $2 AND $3
              ORDER BY s.id, e.sequence LIMIT $5";
    /// Places of the log as they are.
    entries = "SELECT l.position, e.sequence, e.at, e.command, e.part, e.of, s.kind, s.name, l.stream, e.hash, s.tenant
               FROM @.log l LEFT JOIN @.events e ON e.stream = l.stream AND e.sequence = l.sequence
               LEFT JOIN @.streams s ON s.id = l.stream
               WHERE l.tenant = $1 AND l.position > $2 ORDER BY l.position LIMIT $3";
    /// All keys, one after another.
    all_keys = "SELECT index, key, stream, sequence FROM @.keys
                WHERE tenant = $1 AND (index, key, stream) > ($2, $3, $4)
                ORDER BY index, key, stream LIMIT $5";
    /// One key.
    key = "SELECT sequence FROM @.keys WHERE tenant = $1 AND index = $2 AND key = $3 AND stream = $4";
}

#[cfg(test)]
mod tests;
