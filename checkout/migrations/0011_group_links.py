"""One link for the group, and who has taken a share by it."""

import django.db.models.deletion
from django.db import migrations, models

import config.lib.crypto
import config.lib.prepared

CLAIM = {
    "claim_digest": models.CharField(
        blank=True,
        db_default="",
        default="",
        help_text="Of the browser that has taken it.",
        max_length=64,
    ),
    "claim_name": models.CharField(
        blank=True,
        db_default="",
        default="",
        help_text="As whoever has taken it wrote it.",
        max_length=30,
    ),
    "claimed_until": models.DateTimeField(blank=True, help_text="When it is free again.", null=True),
}


class Migration(migrations.Migration):
    dependencies = [("checkout", "0010_shares_that_bend")]

    operations = [
        migrations.CreateModel(
            name="GroupLink",
            fields=[
                (
                    "checkout",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="group_link",
                        serialize=False,
                        to="checkout.checkout",
                    ),
                ),
                ("token", config.lib.crypto.EncryptedTextField(editable=False)),
                ("token_digest", models.CharField(editable=False, max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            bases=(config.lib.prepared.PreparedModel,),
        ),
        *(migrations.AddField("paymentrequest", name, field) for name, field in CLAIM.items()),
    ]
