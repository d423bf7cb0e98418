"""Outside production time may be advanced for one checkout, and its history lies earlier then.

By a function that the tables' owner keeps: nothing else of a line changes, and by nobody else's hand.
"""

from django.conf import settings
from django.db import migrations

ADVANCE = """
DROP TRIGGER changes_are_append_only ON checkout_change;
CREATE TRIGGER changes_stay BEFORE DELETE ON checkout_change FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER changes_are_append_only BEFORE UPDATE ON checkout_change FOR EACH ROW
    WHEN (to_jsonb(OLD) - 'created_at' IS DISTINCT FROM to_jsonb(NEW) - 'created_at'
        OR current_setting('checkout.advanced', true) IS DISTINCT FROM OLD.checkout_id::text)
    EXECUTE FUNCTION append_only();
CREATE FUNCTION advance_history(advanced uuid, seconds integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE touched integer;
BEGIN
    IF seconds NOT BETWEEN 1 AND 864000 THEN
        RAISE EXCEPTION 'time passes by one second to ten days' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM set_config('checkout.advanced', advanced::text, true);
    UPDATE checkout_change SET created_at = created_at - make_interval(secs => seconds)
    WHERE checkout_id = advanced;
    GET DIAGNOSTICS touched = ROW_COUNT;
    PERFORM set_config('checkout.advanced', '', true);
    RETURN touched;
END $$;
REVOKE ALL ON FUNCTION advance_history(uuid, integer) FROM PUBLIC;
"""
STAND = """
DROP FUNCTION IF EXISTS advance_history(uuid, integer);
DROP TRIGGER IF EXISTS changes_stay ON checkout_change;
DROP TRIGGER changes_are_append_only ON checkout_change;
CREATE TRIGGER changes_are_append_only BEFORE UPDATE OR DELETE ON checkout_change
    FOR EACH ROW EXECUTE FUNCTION append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("checkout", "0015_prefills")]
    operations = [migrations.RunSQL(ADVANCE if settings.SANDBOX else migrations.RunSQL.noop, STAND)]
