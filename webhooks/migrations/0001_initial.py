import config.lib.crypto
import django.contrib.postgres.fields
import django.db.models.deletion
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('payments', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Subscription',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('url', models.CharField(max_length=2048)),
                ('event_types', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), size=None)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('is_approved', models.BooleanField(db_default=False, default=False, help_text='Whether an owner or admin chose this address. Otherwise no personal data is sent to it.')),
                ('has_deliveries', models.BooleanField(default=False, help_text='Whether deliveries were ever sent to it. It is retained as long as they are.')),
                ('merchant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='payments.merchant')),
            ],
        ),
        migrations.CreateModel(
            name='Endpoint',
            fields=[
                ('subscription', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, serialize=False, to='webhooks.subscription')),
                ('paced_until', models.DateTimeField(blank=True, null=True)),
                ('hung_in_a_row', models.PositiveIntegerField(db_default=0, default=0)),
                ('last_success_at', models.DateTimeField(blank=True, null=True)),
                ('last_failure_at', models.DateTimeField(blank=True, null=True)),
                ('last_error', models.CharField(blank=True, db_default='', default='', max_length=255)),
                ('failing_since', models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name='SigningSecret',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('secret', config.lib.crypto.EncryptedTextField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('subscription', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='secrets', to='webhooks.subscription')),
            ],
        ),
        migrations.AddConstraint(
            model_name='subscription',
            constraint=models.UniqueConstraint(models.F('merchant'), condition=models.Q(('ended_at', None)), name='one_subscription_per_merchant'),
        ),
        migrations.AddConstraint(
            model_name='signingsecret',
            constraint=models.UniqueConstraint(models.F('subscription'), condition=models.Q(('expires_at', None)), name='one_current_secret_per_subscription'),
        ),
        # webhooks/sql/tables.sql creates the tables.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='Delivery',
                    fields=[
                        ('id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                        ('event_type', models.CharField(choices=[('checkout.authorized', 'checkout.authorized'), ('checkout.voided', 'checkout.voided'), ('marketing.opted_in', 'marketing.opted_in'), ('webhook.test', 'webhook.test')], max_length=40)),
                        ('status', models.CharField(choices=[('pending', 'Waiting'), ('delivered', 'Delivered'), ('parked', 'Parked'), ('superseded', 'Superseded')], default='pending', max_length=10)),
                        ('is_urgent', models.BooleanField(default=False, help_text='It is sent before others, and is not paced.')),
                        ('attempt_count', models.PositiveIntegerField(default=0)),
                        ('resent_count', models.PositiveIntegerField(default=0, help_text='How many attempts people requested.')),
                        ('resent_by', models.CharField(blank=True, help_text='Who requested the next attempt.', max_length=60)),
                        ('returns_at', models.DateTimeField(blank=True, help_text='When the next automatic attempt starts if the requested one fails.', null=True)),
                        ('valid_until', models.DateTimeField(blank=True, help_text='No attempt of an urgent delivery starts at or after this time.', null=True)),
                        ('superseded_at', models.DateTimeField(blank=True, help_text='When the event was superseded during an attempt.', null=True)),
                        ('next_attempt_at', models.DateTimeField(blank=True, null=True)),
                        ('lease_until', models.DateTimeField(blank=True, null=True)),
                        ('lease_token', models.UUIDField(blank=True, null=True)),
                        ('ended_at', models.DateTimeField(blank=True, null=True)),
                        ('closed_at', models.DateTimeField(blank=True, help_text='When a person closed the parked delivery.', null=True)),
                        ('merchant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant')),
                        ('subscription', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, to='webhooks.subscription')),
                    ],
                    options={
                        'verbose_name_plural': 'deliveries',
                    },
                ),
                migrations.CreateModel(
                    name='Attempt',
                    fields=[
                        ('id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                        ('number', models.PositiveIntegerField()),
                        ('event_type', models.CharField(choices=[('checkout.authorized', 'checkout.authorized'), ('checkout.voided', 'checkout.voided'), ('marketing.opted_in', 'marketing.opted_in'), ('webhook.test', 'webhook.test')], max_length=40)),
                        ('actor', models.CharField(blank=True, db_default='', default='', help_text='Who requested it.', max_length=60)),
                        ('started_at', models.DateTimeField()),
                        ('ended_at', models.DateTimeField(blank=True, null=True)),
                        ('is_delivered', models.BooleanField(blank=True, help_text='Empty while the attempt is in progress.', null=True)),
                        ('http_status', models.PositiveSmallIntegerField(blank=True, null=True)),
                        ('error_message', models.CharField(blank=True, max_length=255, null=True)),
                        ('duration_ms', models.PositiveIntegerField(blank=True, null=True)),
                        ('response_excerpt', models.TextField(blank=True)),
                        ('merchant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant')),
                        ('delivery', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='attempts', to='webhooks.delivery')),
                    ],
                ),
                migrations.CreateModel(
                    name='Event',
                    fields=[
                        ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('type', models.CharField(choices=[('checkout.authorized', 'checkout.authorized'), ('checkout.voided', 'checkout.voided'), ('marketing.opted_in', 'marketing.opted_in'), ('webhook.test', 'webhook.test')], max_length=40)),
                        ('checkout_uuid', models.UUIDField(blank=True, null=True)),
                        ('body', models.BinaryField()),
                        ('created_at', models.DateTimeField(help_text='When the event happened.')),
                        ('written_at', models.DateTimeField(db_default=models.Func(function='clock_timestamp'), editable=False, help_text='When the row was written.')),
                        ('valid_until', models.DateTimeField(blank=True, help_text='No attempt starts at or after this time.', null=True)),
                        ('superseded_at', models.DateTimeField(blank=True, null=True)),
                        ('body_deleted_at', models.DateTimeField(blank=True, help_text='When its personal data was deleted.', null=True)),
                        ('request_id', models.CharField(blank=True, max_length=64)),
                        ('traceparent', models.CharField(blank=True, db_default='', default='', editable=False, max_length=55)),
                        ('merchant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant')),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.AddField(
                    model_name='delivery',
                    name='event',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='deliveries', to='webhooks.event'),
                ),
            ],
        ),
    ]
