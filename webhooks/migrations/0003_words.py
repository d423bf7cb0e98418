from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks", "0002_sql"),
    ]

    operations = [
        migrations.AlterField(
            model_name="attempt",
            name="event_type",
            field=models.CharField(
                choices=[
                    ("checkout.authorized", "checkout.authorized"),
                    ("checkout.voided", "checkout.voided"),
                    ("marketing.opted_in", "marketing.opted_in"),
                    ("webhook.test", "webhook.test"),
                ],
                max_length=40,
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="event_type",
            field=models.CharField(
                choices=[
                    ("checkout.authorized", "checkout.authorized"),
                    ("checkout.voided", "checkout.voided"),
                    ("marketing.opted_in", "marketing.opted_in"),
                    ("webhook.test", "webhook.test"),
                ],
                max_length=40,
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="status",
            field=models.CharField(
                choices=[
                    ("pending", "Waiting"),
                    ("delivered", "Delivered"),
                    ("parked", "Parked"),
                    ("superseded", "Superseded"),
                ],
                default="pending",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="event",
            name="type",
            field=models.CharField(
                choices=[
                    ("checkout.authorized", "checkout.authorized"),
                    ("checkout.voided", "checkout.voided"),
                    ("marketing.opted_in", "marketing.opted_in"),
                    ("webhook.test", "webhook.test"),
                ],
                max_length=40,
            ),
        ),
    ]
