"""Room for the references and addresses of any provider: both are kept whole."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("payments", "0003_hung_clients")]
    operations = [
        migrations.AlterField(
            model_name="operation",
            name="action_url",
            field=models.URLField(blank=True, max_length=2048),
        ),
        migrations.AlterField(
            model_name="operation",
            name="reference",
            field=models.CharField(blank=True, help_text="The provider's own.", max_length=255),
        ),
    ]
