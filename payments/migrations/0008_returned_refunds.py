from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0007_bookings"),
    ]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="returned_as",
            field=models.UUIDField(
                blank=True,
                help_text="In the ledger: that a refund which was settled came back.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="posting",
            name="transaction",
            field=models.UUIDField(
                help_text="What moved the money: an operation, its coming back, a dispute."
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("returned_as", None),
                    models.Q(("kind", "refund"), ("state", "succeeded")),
                    _connector="OR",
                ),
                name="only_a_settled_refund_comes_back",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.UniqueConstraint(
                models.F("returned_as"),
                condition=models.Q(("returned_as__isnull", False)),
                name="a_refund_comes_back_once",
            ),
        ),
    ]
