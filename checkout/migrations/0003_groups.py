import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("checkout", "0002_sql"),
    ]

    operations = [
        migrations.CreateModel(
            name="ReplacedLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token_digest", models.CharField(editable=False, max_length=64, unique=True)),
                ("replaced_at", models.DateTimeField()),
                (
                    "share",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="replaced_links",
                        to="checkout.paymentrequest",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="apicall",
            name="ignored_fields",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Fields that the API does not know.",
                max_length=700,
            ),
        ),
        migrations.AlterModelOptions(name="apicall", options={"verbose_name": "API call"}),
        migrations.AlterModelOptions(
            name="leadnotification",
            options={"verbose_name": "SMS message to a lead", "verbose_name_plural": "SMS messages to leads"},
        ),
    ]
