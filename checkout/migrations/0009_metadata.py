"""What a merchant keeps with an order, and the last change's time, which the database's clock alone gives."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkout", "0008_index_of_leads")]

    operations = [
        migrations.AddField(
            model_name="checkout",
            name="metadata",
            field=models.JSONField(
                blank=True, help_text="As the merchant sent it; null if nothing.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="checkout",
            name="updated_at",
            field=models.DateTimeField(
                help_text="When what a read shows last changed, by the database's clock."
            ),
        ),
    ]
