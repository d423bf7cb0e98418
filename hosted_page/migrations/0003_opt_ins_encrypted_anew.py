"""An opt-in's address may be encrypted anew, under the first of FIELD_KEYS; nothing else of it ever changes."""

from django.db import migrations

BUT_THE_ADDRESS = """
DROP TRIGGER opt_ins_are_append_only ON hosted_page_optin;
CREATE TRIGGER opt_ins_stay BEFORE DELETE ON hosted_page_optin
    FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER opt_ins_are_append_only BEFORE UPDATE ON hosted_page_optin FOR EACH ROW
    WHEN (to_jsonb(OLD) - 'email' IS DISTINCT FROM to_jsonb(NEW) - 'email') EXECUTE FUNCTION append_only();
"""

NOTHING_AT_ALL = """
DROP TRIGGER opt_ins_are_append_only ON hosted_page_optin;
DROP TRIGGER opt_ins_stay ON hosted_page_optin;
CREATE TRIGGER opt_ins_are_append_only BEFORE UPDATE OR DELETE ON hosted_page_optin
    FOR EACH ROW EXECUTE FUNCTION append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0002_guards")]
    operations = [migrations.RunSQL(BUT_THE_ADDRESS, NOTHING_AT_ALL)]
