"""The numbers that codes were sent to are encrypted, as in checkout's migration of this name."""

from django.db import migrations

from checkout.migrations._sealing import seal
from config.lib.crypto import FindableTextField

WIDER = "ALTER TABLE hosted_page_signincode ALTER COLUMN phone TYPE {kind}"


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("hosted_page", "0004_erase_opt_ins"), ("checkout", "0005_numbers_encrypted")]
    operations = [
        migrations.RunSQL(
            [WIDER.format(kind="text")],
            [WIDER.format(kind="varchar(16)")],
            state_operations=[
                migrations.AlterField(model_name="signincode", name="phone", field=FindableTextField())
            ],
        ),
        seal("hosted_page_signincode"),
    ]
