-- Rows of callers, written in the transaction of a command of theirs: not part
-- of the journal, and never read by us.
CREATE TABLE own_rows (
    tenant INTEGER NOT NULL REFERENCES tenants,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
