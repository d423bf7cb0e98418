"""The raw SQL of this package: API callers, startup checks, database roles, migrations and key rotation."""

FIND_CALLER = """
SELECT client.id, token.scope,
    client.last_used_at IS NULL OR client.last_used_at < statement_timestamp() - interval '1 minute', {merchant}
FROM oauth2_provider_accesstoken token
JOIN portal_apiclient client ON client.id = token.application_id
JOIN payments_merchant merchant ON merchant.id = client.merchant_id
WHERE token.token_checksum = %s AND token.expires > statement_timestamp() AND client.revoked_at IS NULL
"""
RECORD_KEY_USE = """
UPDATE portal_apiclient SET last_used_at = statement_timestamp()
WHERE id = (SELECT id FROM portal_apiclient WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED)
"""

PING = "SELECT 1"
SHOW_VERSION = "SHOW server_version_num"
FIND_MISSING_TRIGGERS = """
SELECT name FROM unnest(%s::text[]) AS name EXCEPT
SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') ORDER BY name
"""

FIND_ROLE = "SELECT FROM pg_roles WHERE rolname = %s"
# Reads which SQL commands the triggers of each table forbid. A table that forbids DELETE can still allow
# UPDATE.
FIND_FORBIDDEN_VERBS = """
SELECT DISTINCT verb, tgrelid::regclass::text FROM pg_trigger, (VALUES ('DELETE', 8), ('UPDATE', 16)) verbs(verb, bit)
WHERE tgfoid = 'append_only'::regproc AND tgtype & bit <> 0
"""

READ_MIGRATION_DIGESTS = "SELECT obj_description(to_regclass('django_migrations'), 'pg_class')"
STORE_MIGRATION_DIGESTS = "COMMENT ON TABLE django_migrations IS {}"
# Reads which sessions block one session, because they hold locks for which it waits. The text of a statement can
# contain secret data, so only its first word is read.
FIND_BLOCKING_SESSIONS = """
SELECT pid, application_name, state, extract(epoch FROM clock_timestamp() - xact_start)::int,
    split_part(ltrim(query), ' ', 1)
FROM pg_stat_activity WHERE pid = ANY(pg_blocking_pids(%s))
"""

READ_ENCRYPTED = "SELECT {key}, {old} FROM {table} WHERE {rows} AND {key} > %s ORDER BY {key} LIMIT {limit}"
READ_FIRST_ENCRYPTED = READ_ENCRYPTED.replace("AND {key} > %s ", "")
WRITE_ENCRYPTED = "UPDATE {table} SET {column} = {new} WHERE {key} = %s AND {old} = %s"
# The service's role may not change an opt-in's digest directly. It calls this function, which belongs to the
# owner of the tables.
WRITE_OPT_IN = """
SELECT FROM digest_opt_in_again(digest => left(%s, {letters}), opt_in => %s, former => left(%s, {letters})) AS is_done
WHERE is_done
"""
FIND_SAME_DIGEST = "SELECT {key} FROM {table} WHERE left({column}, {letters}) = left(%s, {letters})"
