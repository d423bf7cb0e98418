from django.db import migrations

FORWARD = """
UPDATE payments_discrepancy SET kind = replace(kind, 'texts_of_', 'sms_of_')
WHERE kind IN ('texts_of_merchant_nearly_used_up', 'texts_of_all_nearly_used_up')
"""
BACK = """
UPDATE payments_discrepancy SET kind = replace(kind, 'sms_of_', 'texts_of_')
WHERE kind IN ('sms_of_merchant_nearly_used_up', 'sms_of_all_nearly_used_up')
"""


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0007_indexes_nobody_reads"),
    ]

    operations = [migrations.RunSQL(FORWARD, BACK)]
