"""Install what models cannot describe: guards from `portal/sql`, the cache's table, the canary of the keys."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import migrations

from config.lib import crypto
from config.lib.database.sql_files import install

FILES = ("append_only", "advance_history") if settings.SANDBOX else ("append_only",)


def create_cache_table(apps: Any, schema_editor: Any) -> None:
    call_command("createcachetable", database=schema_editor.connection.alias)


def drop_cache_table(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(f"DROP TABLE {schema_editor.quote_name(settings.CACHES['default']['LOCATION'])}")


def plant_canary(apps: Any, schema_editor: Any) -> None:
    word = "canary"
    apps.get_model("portal", "Canary").objects.create(
        sealed=word, digest=crypto.keyed_digest(word, word), environment=settings.ENVIRONMENT
    )


class Migration(migrations.Migration):
    dependencies = [("portal", "0001_initial"), ("payments", "0002_sql"), ("checkout", "0002_sql")]
    operations = [
        install(Path(__file__), *FILES),
        migrations.RunPython(create_cache_table, drop_cache_table),
        migrations.RunPython(plant_canary, migrations.RunPython.noop),
    ]
