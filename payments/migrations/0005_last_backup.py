from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("payments", "0004_dispute_urgency")]

    operations = [
        migrations.CreateModel(
            name="LastBackup",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "made_at",
                    models.DateTimeField(help_text="When the back-up began, by the database's clock."),
                ),
            ],
            options={
                "verbose_name": "last back-up",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="one_back_up_is_the_last")
                ],
            },
        )
    ]
