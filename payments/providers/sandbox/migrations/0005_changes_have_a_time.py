import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("bank", "0004_disputes"),
    ]

    operations = [
        migrations.AddField(
            model_name="call",
            name="changed_at",
            field=models.DateTimeField(
                default=django.utils.timezone.now,
                help_text="Since when it stands as it does: who lists what is new sees it again.",
            ),
        ),
        migrations.RunSQL("UPDATE bank_call SET changed_at = created_at", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="dispute",
            name="decided_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
