"""What the database itself refuses: words that were shown, and ticks, that change."""

from django.db import migrations

APPEND_ONLY = """
CREATE TRIGGER opt_in_texts_are_append_only BEFORE UPDATE OR DELETE ON hosted_page_optintext
    FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER opt_ins_are_append_only BEFORE UPDATE OR DELETE ON hosted_page_optin
    FOR EACH ROW EXECUTE FUNCTION append_only();
"""

NO_GUARDS = """
DROP TRIGGER opt_ins_are_append_only ON hosted_page_optin;
DROP TRIGGER opt_in_texts_are_append_only ON hosted_page_optintext;
"""


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0001_initial"), ("payments", "0002_guards")]
    operations = [migrations.RunSQL(APPEND_ONLY, NO_GUARDS)]
