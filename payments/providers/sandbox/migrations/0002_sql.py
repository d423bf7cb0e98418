"""Install what models cannot describe from `payments/providers/sandbox/sql`: tables that are not logged."""

from pathlib import Path

from django.db import migrations

from config.lib.database.sql_files import install


class Migration(migrations.Migration):
    dependencies = [("bank", "0001_initial")]
    operations = [install(Path(__file__), "storage")]
