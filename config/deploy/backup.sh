#!/bin/sh
# Makes a back-up of the database with pg_dump, verifies it, and records its time, which the alert BackupLate reads.
# Rule environment.backup.
#
#   backup.sh             makes and verifies a back-up, and removes the oldest ones
#   backup.sh --restore   also restores the back-up into a new database, and drops this database at the end
#   backup.sh --record    only records that a different program has just made and verified a back-up
#
# It needs only PostgreSQL's client programs, in the server's version or a newer one. They read PGHOST, PGUSER,
# PGPASSWORD and so on. The role must be a superuser or own the tables. --restore needs a superuser.
set -eu
umask 077
: "${PGDATABASE:=checkout}" "${BACKUP_DIR:=/backup}" "${BACKUP_KEEP:=14}"
export PGDATABASE

fail() {
    echo "backup: $*" >&2
    exit 1
}

query() {
    psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 --command "$@"
}

record() {
    query "INSERT INTO payments_lastbackup (id, made_at) VALUES (1, '$1')
        ON CONFLICT (id) DO UPDATE SET made_at = excluded.made_at"
}

restore() {
    query "CREATE DATABASE $scratch TEMPLATE template0"
    pg_restore --exit-on-error --dbname "$scratch" "$1"
    read_migrations='SELECT max(id) FROM django_migrations'
    [ "$(query "$read_migrations" "$scratch")" = "$(query "$read_migrations")" ] || fail "the restored tables differ"
}

remove_leftovers() {
    rm -f "$unfinished"
    [ -z "$scratch" ] || query "DROP DATABASE IF EXISTS $scratch"
}

case "${1:-}" in '' | --restore | --record) ;; *) fail "unknown argument $1" ;; esac
case "$BACKUP_KEEP" in '' | 0* | *[!0-9]*) fail "BACKUP_KEEP must be a whole number from 1" ;; esac

began_at=$(query 'SELECT clock_timestamp()')
if [ "${1:-}" = --record ]; then
    record "$began_at"
    exit
fi
finished=$BACKUP_DIR/$PGDATABASE-$(date -u +%Y-%m-%dT%H%M%SZ).dump
unfinished=$finished.part
scratch=
trap remove_leftovers EXIT
trap 'exit 1' HUP INT TERM

pg_dump --format custom --file "$unfinished"
pg_restore --file /dev/null "$unfinished" # reading all data shows whether the file is complete
if [ "${1:-}" = --restore ]; then
    scratch=backup_check_$$
    restore "$unfinished"
fi
mv "$unfinished" "$finished"
record "$began_at"
# The names contain the time, so sorting by name is sorting by age.
find "$BACKUP_DIR" -maxdepth 1 -name "$PGDATABASE-*.dump" | sort -r | tail -n "+$((BACKUP_KEEP + 1))" |
    while read -r oldest; do rm -f "$oldest"; done
echo "backup: $finished has $(wc -c < "$finished") bytes"
