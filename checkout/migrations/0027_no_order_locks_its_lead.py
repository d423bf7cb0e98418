"""An order does not lock its lead's row, nor does its history lock the order's, nor a merchant's customer the person's.

No order and no customer can be deleted instead, and the proof finds what is of none.
"""

from django.db import migrations, models
from django.db.models.deletion import PROTECT

from payments.migrations._letting_go import let_go, take_back

STAY = "CREATE OR REPLACE TRIGGER {0}_stay BEFORE DELETE ON checkout_{1} FOR EACH ROW EXECUTE FUNCTION append_only()"
LEAD = models.ForeignKey(
    "checkout.customer", on_delete=PROTECT, null=True, blank=True, db_index=False, db_constraint=False
)
KNOWN = models.ForeignKey(
    "checkout.customer",
    on_delete=PROTECT,
    null=True,
    blank=True,
    db_constraint=False,
    help_text="Empty: somebody whose number is not verified.",
)
LINE = models.ForeignKey("checkout.checkout", on_delete=PROTECT, related_name="changes", db_constraint=False)


def freed(model, name, field, other):
    """Return the operation that lets the foreign key of a field go."""
    table, column = f"checkout_{model}", f"{name}_id"
    return migrations.SeparateDatabaseAndState(
        [migrations.RunPython(let_go(table, column), take_back(table, column, f"checkout_{other}"))],
        [migrations.AlterField(model, name, field)],
    )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("checkout", "0026_calls_listed")]

    operations = [
        migrations.RunSQL(STAY.format("orders", "checkout"), "DROP TRIGGER orders_stay ON checkout_checkout"),
        migrations.RunSQL(
            STAY.format("customers", "customer"), "DROP TRIGGER customers_stay ON checkout_customer"
        ),
        freed("checkout", "lead", LEAD, "customer"),
        freed("merchantcustomer", "customer", KNOWN, "customer"),
        freed("change", "checkout", LINE, "checkout"),
    ]
