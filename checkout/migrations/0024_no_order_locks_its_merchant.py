"""A new order, or a person whom a merchant comes to know, does not lock the merchant's row: payments' 0012."""

from django.db import migrations

from payments.migrations._letting_go import of_merchant


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("checkout", "0023_items_in_their_bill"),
        ("payments", "0012_no_payment_locks_its_merchant"),
    ]

    operations = [of_merchant("checkout", "checkout"), of_merchant("checkout", "merchantcustomer")]
