import config.lib.crypto
import django.db.models.deletion
import django.db.models.functions.text
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('checkout', '0001_initial'),
        ('payments', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='PayerSignIn',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('subject', models.UUIDField(help_text="The checkout's or payment request's uuid.")),
                ('customer_uuid', models.UUIDField(db_index=True)),
                ('is_proven', models.BooleanField(help_text='Whether the payer entered a code. Otherwise the browser was remembered.')),
                ('began_at', models.DateTimeField()),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='SmsStop',
            fields=[
                ('number', models.CharField(help_text='The first half of the digest of the phone number.', max_length=30, primary_key=True, serialize=False)),
                ('key_mark', models.CharField(blank=True, db_default='', default='', help_text='Identifies the LOOKUP_KEY of the digest.', max_length=8)),
                ('stopped_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'number that stopped texts',
                'verbose_name_plural': 'numbers that stopped texts',
            },
        ),
        migrations.CreateModel(
            name='CardTry',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('subject', models.UUIDField(help_text="The checkout's or payment request's uuid.")),
                ('card_token', models.CharField(blank=True, max_length=255)),
                ('phone_digest', models.CharField(max_length=64)),
                ('address_digest', models.CharField(max_length=64)),
                ('site_digest', models.CharField(blank=True, db_default='', default='', help_text="Of an IPv6 address's /48; empty for IPv4.", max_length=64)),
                ('is_counted', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'verbose_name_plural': 'card tries',
                'indexes': [models.Index(models.F('phone_digest'), models.F('created_at'), condition=models.Q(('is_counted', True)), name='card_try_phone'), models.Index(models.F('address_digest'), models.F('created_at'), condition=models.Q(('is_counted', True)), name='card_try_address'), models.Index(models.F('site_digest'), models.F('created_at'), condition=models.Q(('is_counted', True), models.Q(('site_digest', ''), _negated=True)), name='card_try_site')],
            },
        ),
        migrations.CreateModel(
            name='CspReport',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('page', models.CharField(help_text='The kind of page.', max_length=20)),
                ('directive', models.CharField(help_text='The directive of the policy.', max_length=20)),
                ('blocked', models.CharField(help_text='The host that was blocked, or a keyword.', max_length=100)),
                ('first_seen', models.DateTimeField()),
                ('last_seen', models.DateTimeField()),
                ('count', models.PositiveBigIntegerField()),
            ],
            options={
                'verbose_name': 'CSP report',
                'constraints': [models.UniqueConstraint(fields=('page', 'directive', 'blocked'), name='a_violation_has_one_row')],
            },
        ),
        migrations.CreateModel(
            name='KnownBrowser',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('token_digest', models.CharField(max_length=64, unique=True)),
                ('phone', config.lib.crypto.FindableTextField()),
                ('proven_at', models.DateTimeField(help_text='When a code verified the number. The browser is remembered from then on.')),
            ],
            options={
                'indexes': [models.Index(django.db.models.functions.text.Left('phone', 64), name='known_number')],
            },
        ),
        migrations.CreateModel(
            name='OptInText',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('version', models.PositiveIntegerField()),
                ('language', models.CharField(blank=True, max_length=8)),
                ('is_ours', models.BooleanField(default=False, help_text="Whether it is the service's text. Otherwise the merchant wrote it.")),
                ('text', models.CharField(max_length=500)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('merchant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='payments.merchant')),
            ],
            options={
                'verbose_name': 'opt-in wording',
            },
        ),
        migrations.CreateModel(
            name='OptIn',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('checkout_uuid', models.UUIDField()),
                ('share_uuid', models.UUIDField(blank=True, help_text="The mate's share.", null=True)),
                ('email', config.lib.crypto.EncryptedTextField()),
                ('email_digest', models.CharField(max_length=64)),
                ('placement', models.CharField(choices=[('success_page', 'Page after the payment'), ('pay_link', 'Pay link'), ('app', 'App'), ('email_link', 'Link in an e-mail'), ('other', 'Other')], max_length=20)),
                ('opted_in_at', models.DateTimeField()),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='checkout.merchantcustomer')),
                ('text', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='hosted_page.optintext')),
            ],
            options={
                'verbose_name': 'opt-in',
            },
        ),
        migrations.CreateModel(
            name='ShareTake',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('address_digest', models.CharField(max_length=64)),
                ('site_digest', models.CharField(blank=True, db_default='', default='', help_text="Of an IPv6 address's /48; empty for IPv4.", max_length=64)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['address_digest', 'created_at'], name='share_take_address'), models.Index(models.F('site_digest'), models.F('created_at'), condition=models.Q(('site_digest', ''), _negated=True), name='share_take_site')],
            },
        ),
        migrations.CreateModel(
            name='SignInCode',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('subject', models.UUIDField(help_text="The checkout's or payment request's uuid.")),
                ('phone', config.lib.crypto.FindableTextField()),
                ('browser_digest', models.CharField(max_length=64)),
                ('code_digest', models.CharField(max_length=64)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['subject', 'created_at'], name='hosted_page_subject_7d816d_idx')],
            },
        ),
        migrations.CreateModel(
            name='SmsDay',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('day', models.DateField(help_text='In UTC.')),
                ('count', models.PositiveIntegerField()),
                ('warned_at', models.DateTimeField(blank=True, help_text='When the operators were notified.', null=True)),
                ('merchant', models.ForeignKey(blank=True, help_text='Null for all merchants.', null=True, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant')),
            ],
            options={
                'verbose_name': 'day of texts',
                'verbose_name_plural': 'days of texts',
            },
        ),
        migrations.CreateModel(
            name='SmsMessage',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('code', 'Sign-in code'), ('return', 'Code for a returning payer'), ('invitation', 'Invitation'), ('reminder', 'Reminder'), ('lead', 'News for the lead'), ('receipt', 'Receipt link')], max_length=10)),
                ('checkout_uuid', models.UUIDField()),
                ('subject', models.UUIDField(help_text="The checkout's or payment request's uuid.")),
                ('phone', config.lib.crypto.EncryptedTextField(blank=True, editable=False, null=True)),
                ('body', config.lib.crypto.EncryptedTextField(blank=True, editable=False, null=True)),
                ('phone_digest', models.CharField(blank=True, help_text='Empty if the message has no recipient.', max_length=64)),
                ('range_digest', models.CharField(blank=True, max_length=64)),
                ('address_digest', models.CharField(max_length=64)),
                ('site_digest', models.CharField(blank=True, db_default='', default='', help_text="Of an IPv6 address's /48; empty for IPv4.", max_length=64)),
                ('created_at', models.DateTimeField()),
                ('is_counted', models.BooleanField(default=True, help_text='Whether it counts against the budgets. It does not after the payment succeeds.')),
                ('due_at', models.DateTimeField(blank=True, help_text='Null if it is not sent any more.', null=True)),
                ('ends_at', models.DateTimeField(help_text='It is not sent after this time.')),
                ('claimed_at', models.DateTimeField(blank=True, help_text='When sending began. It might have been sent since then, so it is not sent again.', null=True)),
                ('sent_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('receipt', models.CharField(blank=True, choices=[('delivered', 'Delivered'), ('undelivered', 'Undelivered')], help_text="The carrier's report of the delivery. Empty if there is none yet.", max_length=11)),
                ('refusal', models.CharField(blank=True, help_text='Why the carrier did not accept or deliver it.', max_length=32)),
                ('merchant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant')),
            ],
            options={
                'verbose_name': 'text',
            },
        ),
        migrations.AddConstraint(
            model_name='optintext',
            constraint=models.UniqueConstraint(models.F('merchant'), models.F('version'), name='an_opt_in_text_has_one_wording'),
        ),
        migrations.AddIndex(
            model_name='optin',
            index=models.Index(fields=['checkout_uuid'], name='hosted_page_checkou_fa6b5f_idx'),
        ),
        migrations.AddIndex(
            model_name='optin',
            index=models.Index(fields=['email_digest'], name='hosted_page_email_d_ebd0c9_idx'),
        ),
        migrations.AddConstraint(
            model_name='smsday',
            constraint=models.UniqueConstraint(models.F('day'), models.F('merchant'), name='a_days_texts_are_counted_once', nulls_distinct=False),
        ),
        migrations.AddIndex(
            model_name='smsmessage',
            index=models.Index(fields=['phone_digest', 'created_at'], name='hosted_page_phone_d_3df5e3_idx'),
        ),
        migrations.AddIndex(
            model_name='smsmessage',
            index=models.Index(models.F('address_digest'), models.F('created_at'), condition=models.Q(('is_counted', True)), name='sms_address'),
        ),
        migrations.AddIndex(
            model_name='smsmessage',
            index=models.Index(models.F('site_digest'), models.F('created_at'), condition=models.Q(('is_counted', True), models.Q(('site_digest', ''), _negated=True)), name='sms_site'),
        ),
        migrations.AddIndex(
            model_name='smsmessage',
            index=models.Index(models.F('range_digest'), models.F('created_at'), condition=models.Q(('is_counted', True)), name='sms_range'),
        ),
        migrations.AddIndex(
            model_name='smsmessage',
            index=models.Index(models.F('created_at'), condition=models.Q(('is_counted', True)), name='sms_counted'),
        ),
        migrations.AddIndex(
            model_name='smsmessage',
            index=models.Index(fields=['checkout_uuid'], name='hosted_page_checkou_3e31dd_idx'),
        ),
        migrations.AddIndex(
            model_name='smsmessage',
            index=models.Index(models.F('ends_at'), condition=models.Q(('ended_at', None)), name='sms_open'),
        ),
    ]
