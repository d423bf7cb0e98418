"""A client that takes no more of an answer, because it hangs or is gone, loses its connection and its locks."""

from django.db import migrations

PATIENCE = """
DO $$
BEGIN
    EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET tcp_user_timeout = ''20s''', current_database());
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("payments", "0002_guards")]
    operations = [migrations.RunSQL(PATIENCE)]
