"""Install what models cannot describe from `webhooks/sql`: partitioned tables, and functions for partitions."""

from pathlib import Path

from django.db import migrations

from config.lib.database.sql_files import install


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0001_initial"), ("payments", "0002_sql")]
    operations = [install(Path(__file__), "partitions", "tables")]
