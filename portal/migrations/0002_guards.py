"""An audit log that nobody changes, the cache table of the login limits, and a word sealed with the database's keys."""

from django.conf import settings
from django.core.management import call_command
from django.db import migrations

from config.lib import crypto

AUDIT = """
CREATE TRIGGER audit_entries_are_append_only BEFORE UPDATE OR DELETE ON portal_auditentry
    FOR EACH ROW EXECUTE FUNCTION append_only();
"""


def create_cache_table(apps, schema_editor):
    call_command("createcachetable", database=schema_editor.connection.alias)


def drop_cache_table(apps, schema_editor):
    schema_editor.execute(f"DROP TABLE {schema_editor.quote_name(settings.CACHES['default']['LOCATION'])}")


def plant_canary(apps, schema_editor):
    word = "canary"
    apps.get_model("portal", "Canary").objects.create(sealed=word, digest=crypto.keyed_digest(word, word))


class Migration(migrations.Migration):
    dependencies = [("portal", "0001_initial"), ("payments", "0002_guards")]
    operations = [
        migrations.RunSQL(AUDIT, "DROP TRIGGER audit_entries_are_append_only ON portal_auditentry"),
        migrations.RunPython(create_cache_table, drop_cache_table),
        migrations.RunPython(plant_canary, migrations.RunPython.noop),
    ]
