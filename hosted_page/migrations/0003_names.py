from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("hosted_page", "0002_sql"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="optin",
            options={"verbose_name": "opt-in"},
        ),
        migrations.AlterModelOptions(
            name="optintext",
            options={"verbose_name": "opt-in wording"},
        ),
        migrations.AlterModelOptions(
            name="smsday",
            options={"verbose_name": "day of SMS messages", "verbose_name_plural": "days of SMS messages"},
        ),
        migrations.AlterModelOptions(
            name="smsmessage",
            options={"verbose_name": "SMS message"},
        ),
        migrations.AlterModelOptions(
            name="smsstop",
            options={
                "verbose_name": "number that stopped SMS messages",
                "verbose_name_plural": "numbers that stopped SMS messages",
            },
        ),
    ]
