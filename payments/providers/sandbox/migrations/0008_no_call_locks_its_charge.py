"""A line of the bank's journal does not lock its charge's row: no charge is ever deleted."""

from django.db import migrations, models
from django.db.models.deletion import PROTECT

from payments.migrations._letting_go import let_go, take_back


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("bank", "0007_tokens_are_not_logged")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunPython(
                    let_go("bank_call", "charge_id"), take_back("bank_call", "charge_id", "bank_charge")
                )
            ],
            [
                migrations.AlterField(
                    "call", "charge", models.ForeignKey("bank.charge", on_delete=PROTECT, db_constraint=False)
                )
            ],
        )
    ]
