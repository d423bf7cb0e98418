"""Install what models cannot describe from `checkout/sql`: guards, and the partitioned table of API calls."""

from pathlib import Path

from django.db import migrations

from config.lib.database.sql_files import install


class Migration(migrations.Migration):
    dependencies = [("checkout", "0001_initial"), ("payments", "0002_sql"), ("webhooks", "0002_sql")]
    operations = [install(Path(__file__), "states", "append_only", "foreign_keys", "api_calls")]
