from pathlib import Path

from django.db import migrations, models

STATES = Path(__file__).parents[1] / "sql" / "states.sql"
REPLACED = models.CheckConstraint(
    condition=models.Q(replaced_at=None) | models.Q(status="cancelled"),
    name="a_replaced_share_is_cancelled",
)
STATUSES = [
    (name, name.capitalize())
    for name in (
        *("draft", "open", "pledged", "paying", "paid", "reimbursed"),
        *("declined", "expired", "cancelled", "refunded"),
    )
]
KINDS = [
    ("declined", "a mate has declined"),
    ("all_paid", "all mates have paid"),
    ("links_end", "the links end in a day"),
    ("all_in", "all mates are in"),
    ("not_taken", "a card was not charged for a pledge"),
]


class Migration(migrations.Migration):
    dependencies = [("checkout", "0004_split_orders")]

    operations = [
        migrations.RunSQL(STATES.read_text(), migrations.RunSQL.noop),
        migrations.AddField(
            model_name="paymentrequest",
            name="replaced_at",
            field=models.DateTimeField(
                blank=True, help_text="When a newer split replaced the share.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="paymentrequest",
            name="status",
            field=models.CharField(choices=STATUSES, default="draft", max_length=10),
        ),
        migrations.AlterField(
            model_name="leadnotification", name="kind", field=models.CharField(choices=KINDS, max_length=9)
        ),
        migrations.AlterField(
            model_name="leadnotification",
            name="share_uuid",
            field=models.UUIDField(blank=True, help_text="The share that the message is about.", null=True),
        ),
        migrations.AlterModelManagers(
            name="paymentrequest", managers=[("objects", models.Manager()), ("every", models.Manager())]
        ),
        migrations.AlterModelOptions(name="paymentrequest", options={"base_manager_name": "every"}),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.AddConstraint("paymentrequest", REPLACED)],
            database_operations=[
                migrations.RunSQL(
                    "ALTER TABLE checkout_paymentrequest ADD CONSTRAINT a_replaced_share_is_cancelled"
                    " CHECK (replaced_at IS NULL OR status = 'cancelled') NOT VALID",
                    "ALTER TABLE checkout_paymentrequest DROP CONSTRAINT a_replaced_share_is_cancelled",
                )
            ],
        ),
    ]
