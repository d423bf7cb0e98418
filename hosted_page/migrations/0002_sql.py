"""Install what models cannot describe from `hosted_page/sql`: the guards of the opt-in, and storage options."""

from pathlib import Path

from django.db import migrations

from config.lib.database.sql_files import install


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0001_initial"), ("payments", "0002_sql")]
    operations = [install(Path(__file__), "opt_ins", "storage")]
