"""Phone numbers are encrypted, and found by a keyed digest. A migration that broke off is run again from its start.

The column grows from varchar(16) to text, which writes no row. A release from before cannot read what this one
writes: it is stopped first, as nothing was shipped yet (CHANGELOG.md).
"""

from django.db import migrations, models
from django.db.models.functions import Left

from checkout.migrations._sealing import seal
from config.lib.crypto import FindableTextField

CUSTOMER = FindableTextField(blank=True, help_text="E.164; none once they are erased.", null=True)
SHARE = FindableTextField(blank=True, help_text="E.164, as the lead wrote it.")
WIDER = "ALTER TABLE checkout_{table} ALTER COLUMN phone TYPE {kind}"
ONE = "DROP INDEX CONCURRENTLY IF EXISTS one_customer_a_number"
ASKED = "DROP INDEX CONCURRENTLY IF EXISTS share_asked_of_number"
PLAIN = "DROP INDEX CONCURRENTLY IF EXISTS share_asked_of"


def widen(table: str, model: str, field: FindableTextField) -> migrations.RunSQL:
    return migrations.RunSQL(
        [WIDER.format(table=table, kind="text")],
        [WIDER.format(table=table, kind="varchar(16)")],
        state_operations=[migrations.AlterField(model_name=model, name="phone", field=field)],
    )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("checkout", "0004_people_found")]
    operations = [
        widen("customer", "customer", CUSTOMER),
        widen("paymentrequest", "paymentrequest", SHARE),
        seal("checkout_customer"),
        seal("checkout_paymentrequest"),
        migrations.RunSQL(
            [
                ONE,
                "CREATE UNIQUE INDEX CONCURRENTLY one_customer_a_number ON checkout_customer (LEFT(phone, 64))",
                "ALTER TABLE checkout_customer DROP CONSTRAINT IF EXISTS checkout_customer_phone_key",
                "DROP INDEX CONCURRENTLY IF EXISTS checkout_customer_phone_b6d13065_like",
            ],
            [
                "DROP INDEX CONCURRENTLY IF EXISTS checkout_customer_phone_key",
                "CREATE UNIQUE INDEX CONCURRENTLY checkout_customer_phone_key ON checkout_customer (phone)",
                "ALTER TABLE checkout_customer ADD CONSTRAINT checkout_customer_phone_key"
                " UNIQUE USING INDEX checkout_customer_phone_key",
                "CREATE INDEX CONCURRENTLY checkout_customer_phone_b6d13065_like"
                " ON checkout_customer (phone varchar_pattern_ops)",
                ONE,
            ],
            state_operations=[
                migrations.AddConstraint(
                    model_name="customer",
                    constraint=models.UniqueConstraint(Left("phone", 64), name="one_customer_a_number"),
                )
            ],
        ),
        migrations.RunSQL(
            [
                ASKED,
                "CREATE INDEX CONCURRENTLY share_asked_of_number ON checkout_paymentrequest (LEFT(phone, 64))"
                " WHERE LEFT(phone, 64) <> ''",
                PLAIN,
            ],
            [
                PLAIN,
                "CREATE INDEX CONCURRENTLY share_asked_of ON checkout_paymentrequest (phone) WHERE phone <> ''",
                ASKED,
            ],
            state_operations=[
                migrations.RemoveIndex(model_name="paymentrequest", name="share_asked_of"),
                migrations.AddIndex(
                    model_name="paymentrequest",
                    index=models.Index(
                        Left("phone", 64),
                        condition=models.Q(("phone", ""), _negated=True),
                        name="share_asked_of_number",
                    ),
                ),
            ],
        ),
    ]
