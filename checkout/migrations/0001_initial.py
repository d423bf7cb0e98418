import config.lib.crypto
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.text
import django.db.models.manager
import uuid
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('payments', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Checkout',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('merchant_order_id', models.CharField(max_length=255)),
                ('status', models.CharField(choices=[('created', 'Not paid yet'), ('authorized', 'Held'), ('captured', 'Captured'), ('voided', 'Voided'), ('expired', 'Expired'), ('refunding', 'Refunding'), ('refunded', 'Refunded')], default='created', max_length=10)),
                ('amount', models.BigIntegerField(help_text='Minor units')),
                ('currency', models.CharField(max_length=3)),
                ('metadata', models.JSONField(blank=True, help_text='As the merchant sent it. Null if the merchant sent no data.', null=True)),
                ('return_url', models.CharField(max_length=2048)),
                ('cancel_url', models.CharField(max_length=2048)),
                ('people', models.PositiveSmallIntegerField(blank=True, help_text='How many people share the cost, including the lead. 1 if the lead pays it all.', null=True)),
                ('language', models.CharField(blank=True, db_default='', default='', help_text='The language of the page on which a lead who shares the cost paid.', max_length=8)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField(help_text="When a field of the API's answer last changed, by the database's clock.")),
                ('expires_at', models.DateTimeField(blank=True, help_text='As the merchant sent it.', null=True)),
                ('payable_until', models.DateTimeField()),
                ('authorized_at', models.DateTimeField(blank=True, null=True)),
                ('capture_before', models.DateTimeField(blank=True, null=True)),
                ('captured_at', models.DateTimeField(blank=True, null=True)),
                ('voided_at', models.DateTimeField(blank=True, null=True)),
                ('void_reason', models.CharField(blank=True, choices=[('merchant_cancel', 'Cancelled'), ('auth_expired', 'Hold lapsed')], max_length=20)),
                ('cancel_note', models.CharField(blank=True, help_text="The merchant's note.", max_length=255)),
                ('expired_at', models.DateTimeField(blank=True, null=True)),
                ('refunded_amount', models.BigIntegerField(default=0)),
                ('last_refund_at', models.DateTimeField(blank=True, null=True)),
                ('merchant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant')),
                ('payment', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, to='payments.payment')),
            ],
        ),
        migrations.CreateModel(
            name='Bill',
            fields=[
                ('checkout', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='checkout.checkout')),
                ('lines', models.JSONField(help_text="The fields of each item, in the order of Item's fields.")),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='GroupLink',
            fields=[
                ('checkout', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='group_link', serialize=False, to='checkout.checkout')),
                ('token', config.lib.crypto.EncryptedTextField(editable=False)),
                ('token_digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Change',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('origin', models.CharField(blank=True, choices=[('created', 'Not paid yet'), ('authorized', 'Held'), ('captured', 'Captured'), ('voided', 'Voided'), ('expired', 'Expired'), ('refunding', 'Refunding'), ('refunded', 'Refunded')], help_text='The previous status. Empty for the creation.', max_length=10)),
                ('to', models.CharField(choices=[('created', 'Not paid yet'), ('authorized', 'Held'), ('captured', 'Captured'), ('voided', 'Voided'), ('expired', 'Expired'), ('refunding', 'Refunding'), ('refunded', 'Refunded')], max_length=10)),
                ('actor', models.CharField(max_length=60)),
                ('request_id', models.CharField(blank=True, max_length=64)),
                ('created_at', models.DateTimeField()),
                ('checkout', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='changes', to='checkout.checkout')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Customer',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('phone', config.lib.crypto.FindableTextField(blank=True, help_text='E.164. Null after an erasure.', null=True)),
                ('name', models.CharField(blank=True, help_text='As the customer last entered it.', max_length=60)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('erased_at', models.DateTimeField(blank=True, null=True)),
                ('cards_erased_at', models.DateTimeField(blank=True, help_text='When the last four digits of their cards were erased too.', null=True)),
            ],
            options={
                'indexes': [models.Index(models.F('id'), condition=models.Q(('erased_at', None)), name='customer_known'), models.Index(models.F('erased_at'), condition=models.Q(('cards_erased_at', None), ('erased_at__isnull', False)), name='customer_cards')],
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Left('phone', 64), name='one_customer_a_number')],
            },
        ),
        migrations.AddField(
            model_name='checkout',
            name='lead',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='led', to='checkout.customer'),
        ),
        migrations.CreateModel(
            name='IdempotencyKey',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('key', models.CharField(max_length=255)),
                ('request_digest', models.CharField(max_length=64)),
                ('checkout_uuid', models.UUIDField(blank=True, null=True)),
                ('status', models.PositiveSmallIntegerField(blank=True, help_text='Empty while the call is in progress.', null=True)),
                ('body', models.BinaryField(blank=True, null=True)),
                ('created_at', models.DateTimeField()),
                ('merchant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant')),
            ],
        ),
        migrations.CreateModel(
            name='LeadNotification',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('declined', 'A mate has declined'), ('all_paid', 'All mates have paid'), ('links_end', 'The links end in a day'), ('all_in', 'All mates are in'), ('not_taken', 'A card was not charged for a pledge')], max_length=9)),
                ('share_uuid', models.UUIDField(blank=True, help_text='The share that the message is about.', null=True)),
                ('due_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(blank=True, help_text='When the message was queued, or was no longer needed.', null=True)),
                ('checkout', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='checkout.checkout')),
            ],
            options={
                'verbose_name': 'text to a lead',
                'verbose_name_plural': 'texts to leads',
            },
        ),
        migrations.CreateModel(
            name='MerchantCustomer',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('customer', models.ForeignKey(blank=True, help_text='Null for a person whose number is not verified.', null=True, on_delete=django.db.models.deletion.PROTECT, to='checkout.customer')),
                ('merchant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant')),
            ],
        ),
        migrations.CreateModel(
            name='PaymentRequest',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('position', models.PositiveSmallIntegerField(help_text="The person's place on the bill. The lead is the first.")),
                ('amount', models.BigIntegerField(help_text='Minor units')),
                ('name', models.CharField(blank=True, help_text='As the lead entered it.', max_length=60)),
                ('phone', config.lib.crypto.FindableTextField(blank=True, help_text='E.164, as the lead entered it.')),
                ('status', models.CharField(choices=[('draft', 'Not asked yet'), ('open', 'Asked'), ('pledged', 'Pledged'), ('paying', 'Paying'), ('paid', 'Paid'), ('reimbursed', 'Paid to the lead'), ('declined', 'Said no'), ('expired', 'Expired'), ('cancelled', 'Cancelled'), ('refunded', 'Refunded')], default='draft', max_length=10)),
                ('token', config.lib.crypto.EncryptedTextField(editable=False)),
                ('token_digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, help_text='When the pay link ends.', null=True)),
                ('paid_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('next_reminder_at', models.DateTimeField(blank=True, help_text='No reminder is sent before this time.', null=True)),
                ('claim_digest', models.CharField(blank=True, db_default='', default='', help_text='The digest of the browser that has claimed the share.', max_length=64)),
                ('claim_name', models.CharField(blank=True, db_default='', default='', help_text='As the person who claimed the share entered it.', max_length=30)),
                ('claimed_at', models.DateTimeField(blank=True, help_text='When the claim began.', null=True)),
                ('claimed_until', models.DateTimeField(blank=True, help_text='When the claim ends.', null=True)),
                ('checkout', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='payment_requests', to='checkout.checkout')),
                ('mate', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='checkout.customer')),
                ('payment', models.ForeignKey(blank=True, help_text='The payment that paid the share.', null=True, on_delete=django.db.models.deletion.PROTECT, to='payments.payment')),
                ('replaced_at', models.DateTimeField(blank=True, help_text='When a newer split replaced the share.', null=True)),
                ('units', django.contrib.postgres.fields.ArrayField(base_field=models.PositiveIntegerField(), blank=True, db_default=[], default=list, help_text='How many units of each line the share pays for. Empty if it is not split by item.', size=100)),
            ],
            options={
                'base_manager_name': 'every',
            },
            managers=[
                ('objects', django.db.models.manager.Manager()),
                ('every', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='ProofRun',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('is_scheduled', models.BooleanField(help_text='Workers run it automatically.')),
                ('next_uuid', models.UUIDField(help_text='The first checkout that is still to be checked. Null if all are checked.', null=True)),
                ('next_month', models.DateField(help_text='The first month whose sums in the ledger are still to be checked.', null=True)),
                ('checkout_count', models.BigIntegerField(default=0)),
                ('posting_count', models.BigIntegerField(default=0)),
                ('breach_count', models.BigIntegerField(default=0)),
                ('begun_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('ended_at',), name='one_proof_of_everything_at_a_time', nulls_distinct=False)],
            },
        ),
        migrations.CreateModel(
            name='Refund',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('merchant_refund_ref', models.CharField(max_length=255)),
                ('reason', models.CharField(blank=True, max_length=500, null=True)),
                ('amount', models.BigIntegerField()),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('settled', 'Settled'), ('failed', 'Failed')], default='pending', max_length=10)),
                ('created_at', models.DateTimeField()),
                ('settled_at', models.DateTimeField(blank=True, null=True)),
                ('failure_reason', models.CharField(blank=True, max_length=40, null=True)),
                ('checkout', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='refunds', to='checkout.checkout')),
                ('merchant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant')),
            ],
        ),
        migrations.CreateModel(
            name='Prefill',
            fields=[
                ('checkout', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='prefill', serialize=False, to='checkout.checkout')),
                ('phone', config.lib.crypto.FindableTextField(blank=True, help_text='E.164. Empty if the merchant sent no number.')),
                ('name', config.lib.crypto.EncryptedTextField(blank=True)),
                ('locale', models.CharField(blank=True, help_text='As the merchant sent it.', max_length=35)),
            ],
            options={
                'indexes': [models.Index(django.db.models.functions.text.Left('phone', 64), name='prefill_number')],
            },
        ),
        migrations.AddIndex(
            model_name='checkout',
            index=models.Index(fields=['merchant', 'created_at', 'id'], name='checkout_listed'),
        ),
        migrations.AddIndex(
            model_name='checkout',
            index=models.Index(models.F('merchant'), django.contrib.postgres.indexes.OpClass(django.db.models.functions.text.Upper('merchant_order_id'), 'text_pattern_ops'), name='checkout_order_ids'),
        ),
        migrations.AddIndex(
            model_name='checkout',
            index=models.Index(fields=['merchant', 'status', 'created_at', 'id'], name='checkout_of_status'),
        ),
        migrations.AddIndex(
            model_name='checkout',
            index=models.Index(fields=['merchant', 'updated_at'], name='checkout_changed'),
        ),
        migrations.AddIndex(
            model_name='checkout',
            index=models.Index(models.F('capture_before'), condition=models.Q(('status', 'authorized')), name='checkout_holds'),
        ),
        migrations.AddIndex(
            model_name='checkout',
            index=models.Index(models.F('payable_until'), condition=models.Q(('status', 'created')), name='checkout_unpaid'),
        ),
        migrations.AddIndex(
            model_name='checkout',
            index=models.Index(models.F('lead'), condition=models.Q(('lead__isnull', False)), name='checkout_led'),
        ),
        migrations.AddConstraint(
            model_name='checkout',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gt', 0)), name='a_checkout_costs_something'),
        ),
        migrations.AddConstraint(
            model_name='checkout',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('authorized_at', None), ('status__in', ['created', 'expired'])), ('status', 'voided'), models.Q(('authorized_at__isnull', False), ('capture_before__isnull', False), ('payment__isnull', False), ('status__in', ['authorized', 'captured', 'refunding', 'refunded'])), _connector='OR'), name='a_held_checkout_has_a_payment_and_a_deadline'),
        ),
        migrations.AddConstraint(
            model_name='checkout',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('captured_at__isnull', False), ('status__in', ['captured', 'refunding', 'refunded'])), models.Q(models.Q(('status__in', ['captured', 'refunding', 'refunded']), _negated=True), ('captured_at', None)), _connector='OR'), name='captured_at_tells_that_money_moved'),
        ),
        migrations.AddConstraint(
            model_name='checkout',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'voided'), ('voided_at__isnull', False), models.Q(('void_reason', ''), _negated=True)), models.Q(models.Q(('status', 'voided'), _negated=True), ('void_reason', ''), ('voided_at', None)), _connector='OR'), name='a_voided_checkout_says_when_and_why'),
        ),
        migrations.AddConstraint(
            model_name='checkout',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('expired_at__isnull', False), ('status', 'expired')), models.Q(models.Q(('status', 'expired'), _negated=True), ('expired_at', None)), _connector='OR'), name='an_expired_checkout_says_when'),
        ),
        migrations.AddConstraint(
            model_name='checkout',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('last_refund_at__isnull', False), ('refunded_amount', models.F('amount')), ('status', 'refunded')), models.Q(models.Q(('status', 'refunded'), _negated=True), ('last_refund_at', None), ('refunded_amount', 0)), _connector='OR'), name='a_refund_returns_everything'),
        ),
        migrations.AddConstraint(
            model_name='idempotencykey',
            constraint=models.UniqueConstraint(models.F('merchant'), models.F('key'), name='an_idempotency_key_is_used_once_per_merchant'),
        ),
        migrations.AddIndex(
            model_name='leadnotification',
            index=models.Index(models.F('due_at'), condition=models.Q(('ended_at', None)), name='lead_notification_due'),
        ),
        migrations.AddConstraint(
            model_name='leadnotification',
            constraint=models.UniqueConstraint(models.F('checkout'), models.F('kind'), models.F('share_uuid'), name='a_lead_is_notified_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='merchantcustomer',
            constraint=models.UniqueConstraint(models.F('merchant'), models.F('customer'), name='one_id_per_person_and_merchant'),
        ),
        migrations.AddIndex(
            model_name='paymentrequest',
            index=models.Index(models.F('expires_at'), condition=models.Q(('status', 'open')), name='pay_link_open'),
        ),
        migrations.AddIndex(
            model_name='paymentrequest',
            index=models.Index(django.db.models.functions.text.Left('phone', 64), condition=models.Q(('phone', ''), _negated=True), name='share_asked_of_number'),
        ),
        migrations.AddIndex(
            model_name='paymentrequest',
            index=models.Index(models.F('id'), condition=models.Q(('name', ''), _negated=True), name='share_named'),
        ),
        migrations.AddConstraint(
            model_name='paymentrequest',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gt', 0)), name='a_share_is_of_something'),
        ),
        migrations.AddConstraint(
            model_name='paymentrequest',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('paid_at__isnull', False), ('payment__isnull', False), ('status__in', ['paid', 'reimbursed', 'refunded'])), models.Q(models.Q(('status__in', ['paid', 'reimbursed', 'refunded']), _negated=True), ('paid_at', None), ('payment', None)), _connector='OR'), name='a_paid_share_has_a_payment'),
        ),
        migrations.AddConstraint(
            model_name='paymentrequest',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['draft', 'cancelled']), ('expires_at__isnull', False), _connector='OR'), name='a_pay_link_ends'),
        ),
        migrations.AddIndex(
            model_name='refund',
            index=models.Index(fields=['merchant', 'created_at', 'id'], name='refund_listed'),
        ),
        migrations.AddIndex(
            model_name='refund',
            index=models.Index(models.F('merchant'), models.F('created_at'), condition=models.Q(('status', 'failed')), name='refund_failed'),
        ),
        migrations.AddConstraint(
            model_name='refund',
            constraint=models.UniqueConstraint(models.F('merchant'), models.F('merchant_refund_ref'), name='a_refund_ref_is_used_once_per_merchant'),
        ),
        migrations.AddConstraint(
            model_name='refund',
            constraint=models.UniqueConstraint(models.F('checkout'), condition=models.Q(('status__in', ['pending', 'settled'])), name='one_refund_that_stands_per_checkout'),
        ),
        migrations.CreateModel(
            name='ReplacedLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token_digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('replaced_at', models.DateTimeField()),
                ('share', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='replaced_links', to='checkout.paymentrequest')),
            ],
        ),
        migrations.AddIndex(
            model_name='checkout',
            index=models.Index(condition=models.Q(('people__gt', 1)), fields=['merchant', 'created_at', 'id'], name='checkout_split'),
        ),
        migrations.AddConstraint(
            model_name='paymentrequest',
            constraint=models.CheckConstraint(condition=models.Q(('replaced_at', None), ('status', 'cancelled'), _connector='OR'), name='a_replaced_share_is_cancelled'),
        ),
        migrations.AddConstraint(
            model_name='paymentrequest',
            constraint=models.UniqueConstraint(condition=models.Q(('replaced_at', None)), fields=('checkout', 'position'), name='a_place_on_a_bill_is_taken_once'),
        ),
        migrations.AddIndex(
            model_name='paymentrequest',
            index=models.Index(models.F('checkout'), condition=models.Q(('status', 'pledged')), name='share_pledged'),
        ),
        # checkout/sql/api_calls.sql creates the tables.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='ApiCall',
                    fields=[
                        ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('client_uuid', models.UUIDField()),
                        ('checkout_uuid', models.UUIDField(blank=True, null=True)),
                        ('method', models.CharField(max_length=8)),
                        ('path', models.CharField(max_length=300)),
                        ('request_id', models.CharField(max_length=64)),
                        ('status', models.PositiveSmallIntegerField()),
                        ('error_code', models.CharField(blank=True, max_length=60)),
                        ('param', models.CharField(blank=True, db_default='', default='', help_text='The field that was refused.', max_length=100)),
                        ('duration_ms', models.PositiveIntegerField(blank=True, null=True)),
                        ('created_at', models.DateTimeField()),
                        ('merchant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant')),
                        ('ignored_fields', models.CharField(blank=True, db_default='', default='', help_text='Fields that the API does not know.', max_length=700)),
                    ],
                    options={
                        'verbose_name': 'API call',
                    },
                ),
            ],
        ),
    ]
