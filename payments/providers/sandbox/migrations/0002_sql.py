"""Run the SQL files in `payments/providers/sandbox/sql` for what models cannot describe: unlogged tables."""

from pathlib import Path

from django.db import migrations

from config.lib.database.sql_files import install


class Migration(migrations.Migration):
    dependencies = [("bank", "0001_initial")]
    operations = [install(Path(__file__), "storage")]
