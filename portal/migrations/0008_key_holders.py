"""Each secret of an API key has a holder: the person who was shown it."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def holder(words):
    return models.ForeignKey(
        blank=True,
        db_index=False,
        help_text=words,
        null=True,
        on_delete=django.db.models.deletion.SET_NULL,
        related_name="+",
        to=settings.AUTH_USER_MODEL,
    )


class Migration(migrations.Migration):
    dependencies = [("portal", "0007_time_passes_for_notes")]

    operations = [
        migrations.AddField("apiclient", "holder", holder("The person who was shown the secret.")),
        migrations.AddField(
            "apiclient", "previous_holder", holder("The person who was shown the previous secret.")
        ),
    ]
