from django.db import migrations, models

PLACES = models.UniqueConstraint(
    fields=["checkout", "position"],
    condition=models.Q(replaced_at=None),
    name="a_place_on_a_bill_is_taken_once",
)
PLEDGED = models.Index("checkout", name="share_pledged", condition=models.Q(status="pledged"))


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while shares are written

    dependencies = [("checkout", "0005_pledges")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint("paymentrequest", "the_people_on_a_bill_are_ordered"),
                migrations.AddConstraint("paymentrequest", PLACES),
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
                    "ALTER TABLE checkout_paymentrequest VALIDATE CONSTRAINT a_replaced_share_is_cancelled",
                    migrations.RunSQL.noop,
                ),
            ],
        )
    ]
