"""An audit log that nobody changes, and the cache table that login limits live in."""

from django.core.management import call_command
from django.db import migrations

AUDIT = """
CREATE TRIGGER audit_entries_are_append_only BEFORE UPDATE OR DELETE ON portal_auditentry
    FOR EACH ROW EXECUTE FUNCTION append_only();
"""


def create_cache_table(apps, schema_editor):
    call_command("createcachetable", database=schema_editor.connection.alias)


class Migration(migrations.Migration):
    dependencies = [("portal", "0001_initial"), ("payments", "0002_guards")]
    operations = [
        migrations.RunSQL(AUDIT),
        migrations.RunPython(create_cache_table, migrations.RunPython.noop),
    ]
