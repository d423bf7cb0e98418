"""Browsers whose person has let us remember their number."""

import uuid_utils.compat
from django.db import migrations, models
from django.db.models.functions import Left

from config.lib.crypto import FindableTextField


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0007_indexes_of_what_is_written_often")]

    operations = [
        migrations.CreateModel(
            name="KnownBrowser",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        primary_key=True, default=uuid_utils.compat.uuid7, editable=False, serialize=False
                    ),
                ),
                ("token_digest", models.CharField(max_length=64, unique=True)),
                ("phone", FindableTextField()),
                (
                    "proven_at",
                    models.DateTimeField(
                        help_text="When a code proved the number: it is remembered from then on."
                    ),
                ),
            ],
            options={"indexes": [models.Index(Left("phone", 64), name="known_number")]},
        ),
    ]
