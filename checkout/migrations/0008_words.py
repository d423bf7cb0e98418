from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("checkout", "0007_items"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="leadnotification",
            options={"verbose_name": "text to a lead", "verbose_name_plural": "texts to leads"},
        ),
        migrations.AlterField(
            model_name="change",
            name="origin",
            field=models.CharField(
                blank=True,
                choices=[
                    ("created", "Not paid yet"),
                    ("authorized", "Held"),
                    ("captured", "Captured"),
                    ("voided", "Voided"),
                    ("expired", "Expired"),
                    ("refunding", "Refunding"),
                    ("refunded", "Refunded"),
                ],
                help_text="The previous status. Empty for the creation.",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="change",
            name="to",
            field=models.CharField(
                choices=[
                    ("created", "Not paid yet"),
                    ("authorized", "Held"),
                    ("captured", "Captured"),
                    ("voided", "Voided"),
                    ("expired", "Expired"),
                    ("refunding", "Refunding"),
                    ("refunded", "Refunded"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="checkout",
            name="status",
            field=models.CharField(
                choices=[
                    ("created", "Not paid yet"),
                    ("authorized", "Held"),
                    ("captured", "Captured"),
                    ("voided", "Voided"),
                    ("expired", "Expired"),
                    ("refunding", "Refunding"),
                    ("refunded", "Refunded"),
                ],
                default="created",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="checkout",
            name="void_reason",
            field=models.CharField(
                blank=True,
                choices=[("merchant_cancel", "Cancelled"), ("auth_expired", "Hold lapsed")],
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="leadnotification",
            name="kind",
            field=models.CharField(
                choices=[
                    ("declined", "A mate has declined"),
                    ("all_paid", "All mates have paid"),
                    ("links_end", "The links end in a day"),
                    ("all_in", "All mates are in"),
                    ("not_taken", "A card was not charged for a pledge"),
                ],
                max_length=9,
            ),
        ),
        migrations.AlterField(
            model_name="paymentrequest",
            name="status",
            field=models.CharField(
                choices=[
                    ("draft", "Not asked yet"),
                    ("open", "Asked"),
                    ("pledged", "Pledged"),
                    ("paying", "Paying"),
                    ("paid", "Paid"),
                    ("reimbursed", "Paid to the lead"),
                    ("declined", "Said no"),
                    ("expired", "Expired"),
                    ("cancelled", "Cancelled"),
                    ("refunded", "Refunded"),
                ],
                default="draft",
                max_length=10,
            ),
        ),
    ]
