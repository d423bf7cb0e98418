from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0002_sql"),
    ]

    operations = [
        migrations.AlterField(
            model_name="booking",
            name="kind",
            field=models.CharField(
                choices=[("settled_outside", "Settled outside"), ("closing", "No longer owed to the lead")],
                max_length=15,
            ),
        ),
        migrations.AlterField(
            model_name="ledgersum",
            name="account",
            field=models.CharField(
                choices=[
                    ("provider", "Provider"),
                    ("merchant", "Merchant"),
                    ("lead", "Lead"),
                    ("outside", "Outside"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="movement",
            name="bearer",
            field=models.CharField(
                choices=[
                    ("provider", "Provider"),
                    ("merchant", "Merchant"),
                    ("lead", "Lead"),
                    ("outside", "Outside"),
                ],
                help_text="Who pays for it, or gains by it.",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="movement",
            name="kind",
            field=models.CharField(
                choices=[
                    ("captured", "Captured"),
                    ("refunded", "Refunded"),
                    ("refund_returned", "Refund returned"),
                    ("dispute_withdrawn", "Taken back for a dispute"),
                    ("dispute_reinstated", "Returned after a dispute"),
                ],
                max_length=18,
            ),
        ),
        migrations.AlterField(
            model_name="operation",
            name="kind",
            field=models.CharField(
                choices=[
                    ("authorize", "Authorization"),
                    ("capture", "Capture"),
                    ("void", "Void"),
                    ("refund", "Refund"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="operation",
            name="purpose",
            field=models.CharField(
                choices=[
                    ("payment", "To charge the card, or to release its hold"),
                    ("reimbursement", "To pay a mate’s share back to the lead’s card"),
                    ("refund_part", "To refund one card of the order"),
                    ("outside", "Made outside this service"),
                ],
                default="payment",
                max_length=13,
            ),
        ),
        migrations.AlterField(
            model_name="operation",
            name="state",
            field=models.CharField(
                choices=[
                    ("planned", "To be sent"),
                    ("in_flight", "Being sent"),
                    ("needs_action", "The payer is asked"),
                    ("pending", "Accepted"),
                    ("unknown", "In doubt"),
                    ("succeeded", "Done"),
                    ("declined", "Declined"),
                    ("failed", "Failed"),
                ],
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="payment",
            name="kind",
            field=models.CharField(
                choices=[
                    ("order", "The lead’s card pays the order"),
                    ("share", "A mate’s card pays a share"),
                ],
                default="order",
                max_length=5,
            ),
        ),
        migrations.AlterField(
            model_name="payment",
            name="status",
            field=models.CharField(
                choices=[
                    ("authorizing", "Being held"),
                    ("authorized", "Held"),
                    ("captured", "Captured"),
                    ("voided", "Released"),
                    ("declined", "Declined"),
                    ("refunded", "Refunded"),
                ],
                default="authorizing",
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="posting",
            name="account",
            field=models.CharField(
                choices=[
                    ("provider", "Provider"),
                    ("merchant", "Merchant"),
                    ("lead", "Lead"),
                    ("outside", "Outside"),
                ],
                max_length=10,
            ),
        ),
    ]
