"""A late posting goes into a day that is open, also when the clock ran ahead and closed days that are still to come."""

from django.db import migrations

OPEN_DAYS = """
CREATE OR REPLACE FUNCTION posting_goes_into_an_open_day() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    closed timestamptz;
BEGIN
    PERFORM pg_current_xact_id();
    SELECT closed_until INTO closed FROM payments_ledgerclosing;
    IF NEW.created_at < closed THEN
        NEW.created_at := {time};
    END IF;
    RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("payments", "0018_movements")]
    operations = [
        migrations.RunSQL(
            OPEN_DAYS.replace("{time}", "greatest(clock_timestamp(), closed)"),
            OPEN_DAYS.replace("{time}", "clock_timestamp()"),
        )
    ]
