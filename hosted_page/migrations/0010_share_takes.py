"""How often a network has taken shares by groups' links, for the limit on them."""

import uuid_utils.compat
from django.db import migrations, models

import config.lib.prepared


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0009_sms_stops")]

    operations = [
        migrations.CreateModel(
            name="ShareTake",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("address_digest", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["address_digest", "created_at"], name="share_take_address")],
            },
            bases=(config.lib.prepared.PreparedModel,),
        ),
    ]
