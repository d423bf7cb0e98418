"""A parked delivery can be closed: the column is empty in what there is, and the release before leaves it so."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0001_initial")]

    operations = [
        migrations.AddField(
            "delivery",
            "closed_at",
            models.DateTimeField(
                blank=True, help_text="When somebody closed it, parked as it is.", null=True
            ),
        )
    ]
