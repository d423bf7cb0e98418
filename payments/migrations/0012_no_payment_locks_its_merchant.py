"""A new payment or posting does not lock its merchant's row, which the orders of a sale all have in common.

A foreign key would, to see that it stays; instead no such row can be deleted, and the proof finds what is nobody's.
"""

from django.db import migrations

from payments.migrations._letting_go import of_merchant

STAY = """
CREATE OR REPLACE TRIGGER merchants_stay BEFORE DELETE ON payments_merchant FOR EACH ROW EXECUTE FUNCTION append_only()
"""


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("payments", "0011_ascending_indexes")]

    operations = [
        migrations.RunSQL(STAY, "DROP TRIGGER merchants_stay ON payments_merchant"),
        of_merchant("payments", "payment"),
        of_merchant("payments", "posting"),
    ]
