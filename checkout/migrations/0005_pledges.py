from pathlib import Path

from django.db import migrations, models

from checkout.states import ShareStatus

STATES = Path(__file__).parents[1] / "sql" / "states.sql"
PLACES = models.UniqueConstraint(
    fields=["checkout", "position"],
    condition=models.Q(replaced_at=None),
    name="a_place_on_a_bill_is_taken_once",
)
REPLACED = models.CheckConstraint(
    condition=models.Q(replaced_at=None) | models.Q(status="cancelled"),
    name="a_replaced_share_is_cancelled",
)
PLEDGED = models.Index("checkout", name="share_pledged", condition=models.Q(status="pledged"))
KINDS = [
    ("said_no", "a mate said no"),
    ("all_paid", "all mates have paid"),
    ("links_end", "the links end in a day"),
    ("all_in", "all mates are in"),
    ("not_taken", "a card was not charged for a pledge"),
]


class Migration(migrations.Migration):
    atomic = False  # the index is built while shares are written

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
            field=models.CharField(choices=ShareStatus.choices, default="draft", max_length=10),
        ),
        migrations.AlterField(
            model_name="leadtold", name="kind", field=models.CharField(choices=KINDS, max_length=9)
        ),
        migrations.AlterField(
            model_name="leadtold",
            name="share_uuid",
            field=models.UUIDField(blank=True, help_text="The share that the message is about.", null=True),
        ),
        migrations.AlterModelManagers(
            name="paymentrequest", managers=[("objects", models.Manager()), ("every", models.Manager())]
        ),
        migrations.AlterModelOptions(name="paymentrequest", options={"base_manager_name": "every"}),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint("paymentrequest", "the_people_on_a_bill_are_ordered"),
                migrations.AddConstraint("paymentrequest", PLACES),
                migrations.AddConstraint("paymentrequest", REPLACED),
                migrations.AddIndex("paymentrequest", PLEDGED),
            ],
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS a_place_on_a_bill_is_taken_once",
                    migrations.RunSQL.noop,
                ),
                migrations.RunSQL(
                    "CREATE UNIQUE INDEX CONCURRENTLY a_place_on_a_bill_is_taken_once"
                    " ON checkout_paymentrequest (checkout_id, position) WHERE replaced_at IS NULL",
                    "DROP INDEX CONCURRENTLY IF EXISTS a_place_on_a_bill_is_taken_once",
                ),
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS share_pledged", migrations.RunSQL.noop),
                migrations.RunSQL(
                    "CREATE INDEX CONCURRENTLY share_pledged ON checkout_paymentrequest (checkout_id)"
                    " WHERE status = 'pledged'",
                    "DROP INDEX CONCURRENTLY IF EXISTS share_pledged",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS the_people_on_a_bill_are_ordered",
                    "CREATE UNIQUE INDEX CONCURRENTLY the_people_on_a_bill_are_ordered"
                    " ON checkout_paymentrequest (checkout_id, position)",
                ),
                migrations.RunSQL(
                    "ALTER TABLE checkout_paymentrequest ADD CONSTRAINT a_replaced_share_is_cancelled"
                    " CHECK (replaced_at IS NULL OR status = 'cancelled') NOT VALID",
                    "ALTER TABLE checkout_paymentrequest DROP CONSTRAINT a_replaced_share_is_cancelled",
                ),
                migrations.RunSQL(
                    "ALTER TABLE checkout_paymentrequest VALIDATE CONSTRAINT a_replaced_share_is_cancelled",
                    migrations.RunSQL.noop,
                ),
            ],
        ),
    ]
