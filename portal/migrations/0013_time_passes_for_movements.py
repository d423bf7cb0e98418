"""Outside production time may be advanced for one checkout, and its movements and bookings lie earlier then.

By the same function that the tables' owner keeps: nothing else of a line changes, and by nobody else's hand.
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
    {money}
    UPDATE portal_checkoutnote SET created_at = created_at - make_interval(secs => seconds)
    WHERE checkout_uuid = advanced;
    UPDATE checkout_change SET created_at = created_at - make_interval(secs => seconds)
    WHERE checkout_id = advanced;
    GET DIAGNOSTICS touched = ROW_COUNT;
    PERFORM set_config('checkout.advanced', '', true);
    RETURN touched;
END $$;
"""
MONEY = """
    UPDATE payments_movement SET occurred_at = occurred_at - make_interval(secs => seconds),
        recorded_at = recorded_at - make_interval(secs => seconds)
    WHERE checkout_uuid = advanced;
    UPDATE payments_booking SET created_at = created_at - make_interval(secs => seconds)
    WHERE checkout_uuid = advanced;
"""
TABLES = (("movement", "{occurred_at,recorded_at}"), ("booking", "{created_at}"))
GUARD = """
DROP TRIGGER {table}s_are_append_only ON payments_{table};
CREATE TRIGGER {table}s_stay BEFORE DELETE ON payments_{table} FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER {table}s_are_append_only BEFORE UPDATE ON payments_{table} FOR EACH ROW
    WHEN (to_jsonb(OLD) - '{times}'::text[] IS DISTINCT FROM to_jsonb(NEW) - '{times}'::text[]
        OR current_setting('checkout.advanced', true) IS DISTINCT FROM OLD.checkout_uuid::text)
    EXECUTE FUNCTION append_only();
"""
UNGUARD = """
DROP TRIGGER {table}s_stay ON payments_{table};
DROP TRIGGER {table}s_are_append_only ON payments_{table};
CREATE TRIGGER {table}s_are_append_only BEFORE UPDATE OR DELETE ON payments_{table}
    FOR EACH ROW EXECUTE FUNCTION append_only();
"""
ADVANCE = FUNCTION.format(money=MONEY) + "".join(
    GUARD.format(table=table, times=times) for table, times in TABLES
)
STAND = FUNCTION.format(money="") + "".join(UNGUARD.format(table=table) for table, _ in TABLES)


class Migration(migrations.Migration):
    dependencies = [("portal", "0012_login_site_index"), ("payments", "0018_movements")]
    operations = [
        migrations.RunSQL(ADVANCE, STAND)
        if settings.SANDBOX
        else migrations.RunSQL(migrations.RunSQL.noop, migrations.RunSQL.noop)
    ]
