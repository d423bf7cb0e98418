"""Outside production time may be advanced for one checkout, and the notes on it lie earlier then, as its history does.

By the same function that the tables' owner keeps: nothing else of a note changes, and by nobody else's hand.
"""

from django.conf import settings
from django.db import migrations

FUNCTION = """
CREATE OR REPLACE FUNCTION advance_history(advanced uuid, seconds integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE touched integer;
BEGIN
    IF seconds NOT BETWEEN 1 AND 864000 THEN
        RAISE EXCEPTION 'time passes by one second to ten days' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM set_config('checkout.advanced', advanced::text, true);
    {notes}
    UPDATE checkout_change SET created_at = created_at - make_interval(secs => seconds)
    WHERE checkout_id = advanced;
    GET DIAGNOSTICS touched = ROW_COUNT;
    PERFORM set_config('checkout.advanced', '', true);
    RETURN touched;
END $$;
"""
NOTES = """
    UPDATE portal_checkoutnote SET created_at = created_at - make_interval(secs => seconds)
    WHERE checkout_uuid = advanced;
"""
GUARD = """
DROP TRIGGER checkout_notes_are_append_only ON portal_checkoutnote;
CREATE TRIGGER checkout_notes_are_append_only BEFORE UPDATE ON portal_checkoutnote FOR EACH ROW
    {when}EXECUTE FUNCTION append_only();
"""
WHEN = """WHEN (to_jsonb(OLD) - 'created_at' IS DISTINCT FROM to_jsonb(NEW) - 'created_at'
        OR current_setting('checkout.advanced', true) IS DISTINCT FROM OLD.checkout_uuid::text)
    """
ADVANCE = FUNCTION.format(notes=NOTES) + GUARD.format(when=WHEN)
STAND = FUNCTION.format(notes="") + GUARD.format(when="")


class Migration(migrations.Migration):
    dependencies = [("portal", "0006_trials"), ("checkout", "0016_time_passes_for_history")]
    operations = [
        migrations.RunSQL(ADVANCE, STAND)
        if settings.SANDBOX
        else migrations.RunSQL(migrations.RunSQL.noop, migrations.RunSQL.noop)
    ]
