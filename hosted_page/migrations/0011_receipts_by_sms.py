"""Links to receipts have a kind of text of their own, and codes go to whoever has paid and comes back."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0010_share_takes")]
    operations = [
        migrations.AlterField(
            model_name="smsmessage",
            name="kind",
            field=models.CharField(
                choices=[
                    ("code", "Code"),
                    ("return", "return: a code for somebody who has paid and comes back"),
                    ("invitation", "Invitation"),
                    ("reminder", "Reminder"),
                    ("lead", "lead: what mates did, to the lead"),
                    ("receipt", "receipt: its link, to whoever has paid"),
                ],
                max_length=10,
            ),
        ),
    ]
