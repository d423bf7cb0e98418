"""Numbers that want no invitations and no reminders; texts to leads have a kind of their own."""

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
        migrations.AlterField(
            model_name="smsmessage",
            name="kind",
            field=models.CharField(
                choices=[
                    ("code", "Code"),
                    ("return", "return: a code for a lead who comes back"),
                    ("invitation", "Invitation"),
                    ("reminder", "Reminder"),
                    ("lead", "lead: what mates did, to the lead"),
                ],
                max_length=10,
            ),
        ),
    ]
