-- The server on which this database was created. A restored copy is on another server or timeline.

INSERT INTO payments_databasemark (id, server, word, opened_at)
SELECT 1, concat_ws('/', system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8),
    'payments_databasemark'::regclass::oid), '', now()
FROM pg_control_system();
