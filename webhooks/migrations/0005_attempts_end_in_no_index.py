"""An attempt that succeeds ends on its page and in no index; by their type only seldom ones are listed by an index.

Those that failed are found by their error, which all of them have and no other. Most attempts tell of holds: whoever
asks for these goes through all of the merchant's. A new partition has the room on its pages that the default one has.
"""

from django.db import migrations, models
from django.db.models import Q

from config.lib.database import partitions

TABLE = "webhooks_attempt"
BY_TYPE = "(merchant_id, event_type, started_at DESC, id DESC)"
BY_TIME = "(merchant_id, started_at DESC, id DESC)"
BEFORE = {"attempt_of_type": BY_TYPE, "attempt_failed": f"{BY_TIME} WHERE NOT is_delivered"}
AFTER = {
    "attempt_seldom": f"{BY_TYPE} WHERE event_type <> 'checkout.authorized'",
    "attempt_refused": f"{BY_TIME} WHERE error_message IS NOT NULL",
}
# As 0001_initial made it, and then as the default partition is.
MAKE = """
CREATE OR REPLACE FUNCTION make_partition(parent name, starts_on date, ends_on date) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp SET timezone = 'UTC' SET lock_timeout = '300ms' AS $$
DECLARE
    made name := parent || '_' || to_char(starts_on, 'YYYYMMDD');
    rest name := parent || '_default';
    today date := clock_timestamp()::date;
    is_caught boolean;
    options text;
BEGIN
    IF starts_on NOT BETWEEN today - 150 AND today + 15 OR ends_on - starts_on NOT BETWEEN 1 AND 7
        OR NOT EXISTS (
            SELECT FROM pg_partitioned_table
            WHERE partrelid = to_regclass(quote_ident(parent)) AND partdefid = to_regclass(quote_ident(rest)))
    THEN
        RAISE EXCEPTION 'no partition of % is made from % to %', parent, starts_on, ends_on
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('make_partition'));
    IF to_regclass(quote_ident(made)) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE id >= $1 AND id < $2)', rest)
        INTO is_caught USING first_id(starts_on), first_id(ends_on);
    IF is_caught THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', made, rest);
    SELECT array_to_string(reloptions, ', ') INTO options FROM pg_class WHERE oid = to_regclass(quote_ident(rest));
    IF options <> '' THEN
        EXECUTE format('ALTER TABLE %I SET (%s)', made, options);
    END IF;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
        parent, made, first_id(starts_on), first_id(ends_on));
    RETURN true;
END $$;
"""
PARTS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'webhooks_attempt'::regclass"


def turn(made, gone, room):
    """Return an act that makes indexes, drops others, and leaves so much room on pages."""

    def act(apps, editor):
        with editor.connection.cursor() as cursor:
            for name, columns in made.items():
                partitions.make_index(cursor, table=TABLE, name=name, columns=columns)
            for name in gone:
                cursor.execute(f"DROP INDEX IF EXISTS {name}")
            cursor.execute(PARTS)
            for (part,) in cursor.fetchall():
                cursor.execute(f"ALTER TABLE {part} {room}")

    return act


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("webhooks", "0004_events_in_order")]

    operations = [
        migrations.RunSQL(MAKE, migrations.RunSQL.noop),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunPython(
                    turn(AFTER, BEFORE, "SET (fillfactor = 60)"), turn(BEFORE, AFTER, "RESET (fillfactor)")
                )
            ],
            state_operations=[
                *(migrations.RemoveIndex("attempt", name) for name in BEFORE),
                migrations.AddIndex(
                    "attempt",
                    models.Index(
                        fields=["merchant", "event_type", "-started_at", "-id"],
                        name="attempt_seldom",
                        condition=~Q(event_type="checkout.authorized"),
                    ),
                ),
                migrations.AddIndex(
                    "attempt",
                    models.Index(
                        fields=["merchant", "-started_at", "-id"],
                        name="attempt_refused",
                        condition=Q(error_message__isnull=False),
                    ),
                ),
            ],
        ),
    ]
