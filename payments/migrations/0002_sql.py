"""Install what models cannot describe from `payments/sql`: triggers, functions, the mark of the database."""

from pathlib import Path

from django.db import migrations

from config.lib.database.sql_files import install


class Migration(migrations.Migration):
    dependencies = [("payments", "0001_initial")]
    operations = [install(Path(__file__), "append_only", "ledger", "former_accounts", "database_mark")]
