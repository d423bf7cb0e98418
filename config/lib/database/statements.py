"""The raw SQL of the database tools."""

READ_CLOCK = "SELECT clock_timestamp()"

LOCK_NAMES = "SELECT pg_advisory_xact_lock(hashtextextended(name, 0)) FROM unnest(%s::text[]) name"

READ_LIMITS = """
SELECT name, setting::int FROM pg_settings
WHERE name = ANY(%s) AND (name <> 'tcp_user_timeout' OR inet_client_addr() IS NOT NULL) ORDER BY name
"""
SET_LIMIT = "ALTER ROLE CURRENT_USER IN DATABASE {database} SET {limit} = {milliseconds}"

# PostgreSQL hides the start times of other roles' transactions. These transactions do not matter, because
# only the service's role writes the listed rows.
READ_HORIZON = """
SELECT least(statement_timestamp(), min(xact_start)) - interval '1 second' FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""

# Reads a server's position and its identity. A replica must not be read if it was promoted, belongs to a
# different cluster or follows an abandoned timeline. After a failover, a server reports the new timeline only
# after its next checkpoint. Until both servers report it, all reads use the primary.
READ_PLACE = """
SELECT pg_is_in_recovery(), concat_ws('/', system_identifier, timeline_id), pg_wal_lsn_diff(
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, '0/0')::bigint
FROM pg_control_system(), pg_control_checkpoint()
"""

HAS_REPLAYED = "SELECT pg_is_in_recovery() AND pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0') >= %s"

# Reads the start day of the oldest partition except the default one, from the partition's name (see
# `Partitioned.named`).
READ_OLDEST_PARTITION = """
SELECT min(to_date(right(relname::text, 8), 'YYYYMMDD')) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = %s::regclass AND relname ~ '_[0-9]{8}$'
"""
READ_EXISTING_TABLES = "SELECT name FROM unnest(%s::text[]) name WHERE to_regclass(name) IS NOT NULL"
# These statements call functions that belong to the owner of the tables.
MAKE_PARTITION = "SELECT make_partition(%s, %s, %s)"
DROP_PARTITION = "SELECT drop_partition(%s, %s)"
READ_OLDEST_IDS = "SELECT id FROM {table} WHERE id < %s ORDER BY id LIMIT %s"
DELETE_OLDEST = f"DELETE FROM {{table}} WHERE id IN ({READ_OLDEST_IDS})"  # noqa: S608 - our constant
