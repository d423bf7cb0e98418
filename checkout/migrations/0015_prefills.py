"""What merchants say of their customers, to prefill the page."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Left

import config.lib.crypto
import config.lib.prepared


class Migration(migrations.Migration):
    dependencies = [("checkout", "0014_lead_language")]

    operations = [
        migrations.CreateModel(
            name="Prefill",
            fields=[
                (
                    "checkout",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="prefill",
                        serialize=False,
                        to="checkout.checkout",
                    ),
                ),
                (
                    "phone",
                    config.lib.crypto.FindableTextField(
                        blank=True, help_text="E.164; empty if none was sent."
                    ),
                ),
                ("name", config.lib.crypto.EncryptedTextField(blank=True)),
                (
                    "locale",
                    models.CharField(blank=True, help_text="In the merchant's words.", max_length=35),
                ),
            ],
            options={"indexes": [models.Index(Left("phone", 64), name="prefill_number")]},
            bases=(config.lib.prepared.PreparedModel,),
        ),
    ]
