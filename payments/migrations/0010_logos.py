"""A merchant's logo, and the address of their shop."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("payments", "0009_ledger_sums")]

    operations = [
        migrations.AddField(
            model_name="merchant",
            name="logo_version",
            field=models.PositiveIntegerField(
                blank=True,
                editable=False,
                help_text="The brand's version that brought the logo. Empty: none.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="merchant",
            name="logo_width",
            field=models.PositiveSmallIntegerField(
                blank=True, editable=False, help_text="CSS pixels, where it is 36 high.", null=True
            ),
        ),
        migrations.AddField(
            model_name="merchant",
            name="shop_url",
            field=models.URLField(
                blank=True,
                db_default="",
                default="",
                help_text="Where payers go whose order has no way back for them. Empty: nowhere.",
            ),
        ),
        migrations.AlterField(
            model_name="merchant",
            name="brand_version",
            field=models.PositiveIntegerField(
                default=1, help_text="Raise it when the colour or the logo changes."
            ),
        ),
        migrations.CreateModel(
            name="Logo",
            fields=[
                (
                    "merchant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="payments.merchant",
                    ),
                ),
                (
                    "version",
                    models.PositiveIntegerField(
                        help_text="The brand's, when it came: a part of its address."
                    ),
                ),
                ("mark", models.BinaryField(help_text="PNG, small: beside the name.")),
                ("card", models.BinaryField(help_text="PNG, large: what a chat shows with a group's link.")),
                ("changed_at", models.DateTimeField(auto_now=True)),
            ],
        ),
    ]
