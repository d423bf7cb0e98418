"""The language in which a lead who shares the cost paid: in which they are told by text what mates do."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkout", "0013_lead_told")]
    operations = [
        migrations.AddField(
            model_name="checkout",
            name="language",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Of the page on which a lead who shares the cost paid.",
                max_length=8,
            ),
        ),
    ]
