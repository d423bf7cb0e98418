from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0008_returned_refunds"),
    ]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="closed_as",
            field=models.UUIDField(
                blank=True,
                help_text="In the ledger: that what it brought for the lead was closed against a lost dispute.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="posting",
            name="transaction",
            field=models.UUIDField(
                help_text="What moved the money: an operation, its coming back or closing, a dispute, a booking."
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("closed_as", None),
                    models.Q(("account", "lead"), ("kind", "capture"), ("state", "succeeded")),
                    _connector="OR",
                ),
                name="only_what_is_owed_to_the_lead_is_closed",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.UniqueConstraint(
                models.F("closed_as"),
                condition=models.Q(("closed_as__isnull", False)),
                name="what_is_owed_is_closed_once",
            ),
        ),
    ]
