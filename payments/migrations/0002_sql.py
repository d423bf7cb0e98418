"""Run the SQL files in `payments/sql` for what models cannot describe: triggers, functions, the database mark."""

from pathlib import Path

from django.db import migrations

from config.lib.database.sql_files import install


class Migration(migrations.Migration):
    dependencies = [("payments", "0001_initial")]
    operations = [install(Path(__file__), "append_only", "ledger", "former_accounts", "database_mark")]
