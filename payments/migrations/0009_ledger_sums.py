"""The ledger's days and months are closed and summed; a posting that comes late goes into a day that is open."""

import django.db.models.deletion
import uuid_utils.compat
from django.db import migrations, models

# The transaction gets its id before it looks: whoever looked before the days were closed has an id below the horizon
# that is read afterwards, so that the sums wait for its end. That holds for READ COMMITTED, as all of ours are.
OPEN_DAYS = """
CREATE FUNCTION posting_goes_into_an_open_day() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    closed timestamptz;
BEGIN
    PERFORM pg_current_xact_id();
    SELECT closed_until INTO closed FROM payments_ledgerclosing;
    IF NEW.created_at < closed THEN
        NEW.created_at := clock_timestamp();
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER postings_go_into_open_days BEFORE INSERT ON payments_posting
    FOR EACH ROW EXECUTE FUNCTION posting_goes_into_an_open_day();
"""
NO_OPEN_DAYS = """
DROP TRIGGER postings_go_into_open_days ON payments_posting;
DROP FUNCTION posting_goes_into_an_open_day();
"""


class Migration(migrations.Migration):
    dependencies = [("payments", "0008_sms_kinds")]
    operations = [
        migrations.CreateModel(
            name="LedgerClosing",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("closed_until", models.DateTimeField(help_text="Nothing is posted before it any more.")),
                (
                    "horizon",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Who may still post before it has a transaction id below this.",
                        null=True,
                    ),
                ),
                ("summed_until", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="a_ledger_is_closed_in_one_place"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LedgerSum",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "account",
                    models.CharField(
                        choices=[
                            ("provider", "provider: what the provider owes us"),
                            ("merchant", "merchant: what we owe the merchant"),
                            ("lead", "lead: what we owe the lead"),
                            ("disputed", "disputed: what was taken back until it is decided"),
                            ("outside", "outside: what moved where we do not see it"),
                            ("returned", "returned: refunds that came back"),
                        ],
                        max_length=10,
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("begin", models.DateField()),
                ("end", models.DateField(help_text="The first day after it.")),
                ("amount", models.BigIntegerField(help_text="Minor units")),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="payments.merchant"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(models.F("begin"), name="ledger_sum_begin")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("merchant", "account", "currency", "begin", "end"),
                        include=("amount",),
                        name="a_day_or_month_is_summed_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("end__gt", models.F("begin"))), name="a_sum_is_of_some_days"
                    ),
                ],
            },
        ),
        migrations.RunSQL(OPEN_DAYS, NO_OPEN_DAYS),
    ]
