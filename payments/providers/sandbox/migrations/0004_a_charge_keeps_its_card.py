"""A charge keeps its card and whom it was entered for; the release before knows them by the token alone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bank", "0003_visits_are_not_logged")]

    operations = [
        migrations.AddField(
            "charge",
            "subject",
            models.UUIDField(blank=True, help_text="The one its card was entered for.", null=True),
        ),
        migrations.AddField(
            "charge",
            "last4",
            models.CharField(blank=True, db_default="", default="", help_text="Of its card.", max_length=4),
        ),
    ]
