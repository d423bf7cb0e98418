from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("hosted_page", "0003_names"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="smsday",
            options={"verbose_name": "day of texts", "verbose_name_plural": "days of texts"},
        ),
        migrations.AlterModelOptions(
            name="smsmessage",
            options={"verbose_name": "text"},
        ),
        migrations.AlterModelOptions(
            name="smsstop",
            options={
                "verbose_name": "number that stopped texts",
                "verbose_name_plural": "numbers that stopped texts",
            },
        ),
        migrations.AlterField(
            model_name="optin",
            name="placement",
            field=models.CharField(
                choices=[
                    ("success_page", "Page after the payment"),
                    ("pay_link", "Pay link"),
                    ("app", "App"),
                    ("email_link", "Link in an e-mail"),
                    ("other", "Other"),
                ],
                max_length=20,
            ),
        ),
    ]
