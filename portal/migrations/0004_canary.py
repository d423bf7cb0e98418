"""A known word under the keys that the database is written with."""

from django.db import migrations, models

from config.lib import crypto

WORD = "canary"


def plant(apps, schema_editor):
    apps.get_model("portal", "Canary").objects.create(sealed=WORD, digest=crypto.keyed_digest(WORD, WORD))


class Migration(migrations.Migration):
    dependencies = [("portal", "0003_who_is_a_key")]
    operations = [
        migrations.CreateModel(
            name="Canary",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("sealed", crypto.EncryptedTextField()),
                ("digest", models.CharField(max_length=64)),
                ("planted_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={"verbose_name_plural": "canaries"},
        ),
        migrations.RunPython(plant, migrations.RunPython.noop),
    ]
