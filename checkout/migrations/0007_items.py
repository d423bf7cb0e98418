import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkout", "0006_pledge_indexes")]

    operations = [
        migrations.AddField(
            model_name="paymentrequest",
            name="units",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.PositiveIntegerField(),
                blank=True,
                db_default=[],
                default=list,
                help_text="How many units of each line the share pays for. Empty if it is not split by item.",
                size=100,
            ),
        )
    ]
