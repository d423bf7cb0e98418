"""A customer can be erased: the number goes, and says when."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkout", "0002_guards")]
    operations = [
        migrations.AlterField(
            model_name="customer",
            name="phone",
            field=models.CharField(
                blank=True,
                help_text="E.164; none once they are erased.",
                max_length=16,
                null=True,
                unique=True,
            ),
        ),
        migrations.AddField(
            model_name="customer",
            name="erased_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="customer",
            name="cards_erased_at",
            field=models.DateTimeField(blank=True, help_text="When last 4 went too.", null=True),
        ),
    ]
