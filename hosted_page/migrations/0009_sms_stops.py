"""Numbers that want no invitations and no reminders."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0008_known_browsers")]
    operations = [
        migrations.CreateModel(
            name="SmsStop",
            fields=[
                (
                    "number",
                    models.CharField(
                        help_text="Half of the digest by which its SMS messages are counted.",
                        max_length=30,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("stopped_at", models.DateTimeField()),
            ],
        ),
    ]
