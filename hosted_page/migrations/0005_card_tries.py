"""Cards that were tried are counted for their phone and address, across orders."""

import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("hosted_page", "0004_texts_a_day"),
    ]

    operations = [
        migrations.CreateModel(
            name="CardTry",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("subject", models.UUIDField(help_text="The checkout's or payment request's uuid.")),
                ("card_token", models.CharField(blank=True, max_length=64)),
                ("phone_digest", models.CharField(max_length=64)),
                ("address_digest", models.CharField(max_length=64)),
                ("is_counted", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "card tries",
                "indexes": [
                    models.Index(
                        models.F("phone_digest"),
                        models.F("created_at"),
                        condition=models.Q(("is_counted", True)),
                        name="card_try_phone",
                    ),
                    models.Index(
                        models.F("address_digest"),
                        models.F("created_at"),
                        condition=models.Q(("is_counted", True)),
                        name="card_try_address",
                    ),
                    models.Index(models.F("created_at"), name="card_try_age"),
                ],
            },
        ),
    ]
