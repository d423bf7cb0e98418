import django.contrib.postgres.fields
import django.db.models.deletion
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='BalanceEntry',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('account', models.CharField(blank=True, help_text="The account at the provider. Empty for the service's own account.", max_length=64)),
                ('reference', models.CharField(help_text="The provider's id of the line.", max_length=255)),
                ('kind', models.CharField(choices=[('payment', 'Payment'), ('refund', 'Refund'), ('dispute', 'Dispute'), ('payout', 'Payout'), ('fee', 'Fee'), ('other', 'Other')], max_length=7)),
                ('amount', models.BigIntegerField(help_text='Minor units. Money that leaves the balance is negative.')),
                ('fee', models.BigIntegerField(default=0)),
                ('currency', models.CharField(max_length=3)),
                ('made_at', models.DateTimeField()),
                ('available_at', models.DateTimeField(blank=True, help_text='When the amount can be paid out, or reaches the bank account.', null=True)),
                ('checkout_uuid', models.UUIDField(blank=True, null=True)),
                ('operation', models.UUIDField(blank=True, help_text='The capture or refund that the line is about.', null=True)),
                ('payout', models.CharField(blank=True, help_text="The provider's id of the payout.", max_length=255)),
            ],
            options={
                'verbose_name_plural': 'balance entries',
            },
        ),
        migrations.CreateModel(
            name='Discrepancy',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=60)),
                ('subject', models.UUIDField(blank=True, help_text="The id of the operation, the checkout or the provider's record.", null=True)),
                ('facts', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('mailed_at', models.DateTimeField(blank=True, null=True)),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('note', models.TextField(blank=True)),
            ],
            options={
                'verbose_name_plural': 'discrepancies',
            },
        ),
        migrations.CreateModel(
            name='FormerAccount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider_account', models.CharField(blank=True, help_text="Empty for the service's own account.", max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name='Payment',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('order', 'The lead’s card pays the order'), ('share', 'A mate’s card pays a share')], default='order', max_length=5)),
                ('subject', models.UUIDField(help_text="The checkout's or payment request's uuid.")),
                ('checkout_uuid', models.UUIDField(help_text='The checkout of the payment, for the ledger.')),
                ('amount', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('status', models.CharField(choices=[('authorizing', 'Being held'), ('authorized', 'Held'), ('captured', 'Captured'), ('voided', 'Released'), ('declined', 'Declined'), ('refunded', 'Refunded')], default='authorizing', max_length=12)),
                ('decline_reason', models.CharField(blank=True, max_length=40)),
                ('provider_reference', models.CharField(blank=True, help_text="The provider's id of the payment, if it was registered there first.", max_length=255)),
                ('provider_account', models.CharField(blank=True, help_text='The account at the provider where the payment was made.', max_length=64)),
                ('card_token', models.CharField(max_length=255)),
                ('return_url', models.CharField(blank=True, help_text="Where the payer goes after the bank's question.", max_length=1000)),
                ('card_brand', models.CharField(blank=True, max_length=20)),
                ('card_last4', models.CharField(blank=True, max_length=4)),
                ('card_fingerprint', models.CharField(blank=True, max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('synced_at', models.DateTimeField(blank=True, help_text='When the provider’s books were last read.', null=True)),
                ('abandoned_at', models.DateTimeField(blank=True, help_text='When the payer continued with another card. A hold that is found later is voided.', null=True)),
                ('is_live', models.GeneratedField(db_persist=True, expression=models.ExpressionWrapper(models.Q(('abandoned_at', None), ('status__in', ['authorizing', 'authorized', 'captured'])), output_field=models.BooleanField()), output_field=models.BooleanField())),
            ],
        ),
        migrations.CreateModel(
            name='LedgerSum',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('account', models.CharField(choices=[('provider', 'Provider'), ('merchant', 'Merchant'), ('lead', 'Lead'), ('outside', 'Outside')], max_length=10)),
                ('currency', models.CharField(max_length=3)),
                ('begin', models.DateField()),
                ('end', models.DateField(help_text='The first day after it.')),
                ('amount', models.BigIntegerField(help_text='Minor units')),
            ],
        ),
        migrations.CreateModel(
            name='Merchant',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=120)),
                ('country', models.CharField(default='GB', help_text='The country of phone numbers without a country code.', max_length=2)),
                ('brand_colour', models.CharField(default='#1F4596', help_text='#RRGGBB', max_length=7)),
                ('brand_version', models.PositiveIntegerField(default=1, help_text='Increased when the colour or the logo changes.')),
                ('logo_version', models.PositiveIntegerField(blank=True, editable=False, help_text='The version of the brand that brought the logo. Null if there is no logo.', null=True)),
                ('logo_width', models.PositiveSmallIntegerField(blank=True, editable=False, help_text='CSS pixels, at a height of 36.', null=True)),
                ('support_url', models.URLField(blank=True, verbose_name='help page')),
                ('terms_url', models.URLField(blank=True, verbose_name='terms page')),
                ('privacy_url', models.URLField(blank=True, verbose_name='privacy page')),
                ('shop_url', models.URLField(blank=True, db_default='', default='', help_text='Where payers go if their order has no cancel URL. Empty if they stay on the page.', verbose_name='shop’s address')),
                ('opt_in_enabled', models.BooleanField(default=False, verbose_name='ask for marketing consent')),
                ('time_zone', models.CharField(default='Europe/London', help_text='The time zone of the portal: an IANA name.', max_length=64)),
                ('provider_account', models.CharField(blank=True, help_text="The provider account of the merchant's future payments. Empty: the service's own.", max_length=64)),
                ('return_hosts', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=253), blank=True, default=list, help_text='Hosts to which customers can be sent back. Any host if the list is empty.', size=None)),
                ('unpaid_minutes', models.PositiveSmallIntegerField(blank=True, help_text="How long an unpaid checkout can be paid. Null for the service's default.", null=True, verbose_name='minutes to pay')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Movement',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, help_text='The id of the transaction in the ledger.', primary_key=True, serialize=False)),
                ('checkout_uuid', models.UUIDField(db_index=True)),
                ('kind', models.CharField(choices=[('captured', 'Captured'), ('refunded', 'Refunded'), ('refund_returned', 'Refund returned'), ('dispute_withdrawn', 'Taken back for a dispute'), ('dispute_reinstated', 'Returned after a dispute')], max_length=18)),
                ('amount', models.BigIntegerField(help_text="Minor units of the payment's currency. Money that leaves the provider's balance is negative.")),
                ('reference', models.CharField(help_text="The provider's id of the movement.", max_length=280)),
                ('bearer', models.CharField(choices=[('provider', 'Provider'), ('merchant', 'Merchant'), ('lead', 'Lead'), ('outside', 'Outside')], help_text='Who pays for it, or gains by it.', max_length=10)),
                ('occurred_at', models.DateTimeField(help_text='When it happened, according to the provider.')),
                ('recorded_at', models.DateTimeField(help_text="When it was recorded, by the database's clock.")),
            ],
        ),
        migrations.CreateModel(
            name='Operation',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('authorize', 'Authorization'), ('capture', 'Capture'), ('void', 'Void'), ('refund', 'Refund')], max_length=10)),
                ('purpose', models.CharField(choices=[('payment', 'To charge the card, or to release its hold'), ('reimbursement', 'To pay a mate’s share back to the lead’s card'), ('refund_part', 'To refund one card of the order'), ('outside', 'Made outside this service')], default='payment', max_length=13)),
                ('amount', models.BigIntegerField()),
                ('state', models.CharField(choices=[('planned', 'To be sent'), ('in_flight', 'Being sent'), ('needs_action', 'The payer is asked'), ('pending', 'Accepted'), ('unknown', 'In doubt'), ('succeeded', 'Done'), ('declined', 'Declined'), ('failed', 'Failed')], max_length=12)),
                ('reference', models.CharField(blank=True, help_text="The provider's id of the operation.", max_length=255)),
                ('reason', models.CharField(blank=True, help_text='Why it was declined or failed.', max_length=40)),
                ('action_url', models.URLField(blank=True, max_length=2048)),
                ('refund_uuid', models.UUIDField(blank=True, help_text='The refund of which this refund part is a part.', null=True)),
                ('share_uuid', models.UUIDField(blank=True, help_text="The mate's share that is reimbursed to the lead's card.", null=True)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('first_sent_at', models.DateTimeField(blank=True, help_text='No call under the key was sent before this time.', null=True)),
                ('last_sent_at', models.DateTimeField(blank=True, help_text='No call under the key is sent after this time.', null=True)),
                ('next_attempt_at', models.DateTimeField(blank=True, null=True)),
                ('lease_token', models.UUIDField(blank=True, null=True)),
                ('actor', models.CharField(max_length=60)),
                ('request_id', models.CharField(blank=True, max_length=64)),
                ('traceparent', models.CharField(blank=True, db_default='', default='', editable=False, max_length=55)),
                ('created_at', models.DateTimeField(help_text="By the database's clock, which decides how long the operation is in doubt.")),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('is_open', models.GeneratedField(db_persist=True, expression=models.ExpressionWrapper(models.Q(('state__in', ('in_flight', 'needs_action', 'unknown')), models.Q(('kind__in', ['authorize', 'capture', 'void']), ('state', 'pending')), _connector='OR'), output_field=models.BooleanField()), output_field=models.BooleanField())),
            ],
        ),
        migrations.CreateModel(
            name='Posting',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('transaction', models.UUIDField(help_text='The movement or booking that this line posts.')),
                ('checkout_uuid', models.UUIDField()),
                ('account', models.CharField(choices=[('provider', 'Provider'), ('merchant', 'Merchant'), ('lead', 'Lead'), ('outside', 'Outside')], max_length=10)),
                ('amount', models.BigIntegerField(help_text='Minor units. Money that comes in is positive on the account `provider`.')),
                ('currency', models.CharField(max_length=3)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Reconciled',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('until', models.DateTimeField(help_text="When the last complete run began, by the database's clock.")),
            ],
            options={
                'verbose_name_plural': 'reconciled',
            },
        ),
        migrations.CreateModel(
            name='Switch',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('is_stopped', models.BooleanField(default=True, verbose_name='stopped')),
                ('reason', models.CharField(help_text='A note for your colleagues.', max_length=200)),
                ('changed_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'verbose_name_plural': 'switches',
            },
        ),
        migrations.CreateModel(
            name='DatabaseMark',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('server', models.CharField(max_length=100)),
                ('word', models.CharField(blank=True, help_text='The value of DATABASE_RESTORED at the last start.', max_length=100)),
                ('opened_at', models.DateTimeField(auto_now=True)),
                ('repair_since', models.DateTimeField(blank=True, help_text="The time from which a repair that has begun reads the provider's books.", null=True)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='a_database_has_one_mark')],
            },
        ),
        migrations.CreateModel(
            name='Inquiry',
            fields=[
                ('payment', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, serialize=False, to='payments.payment')),
                ('due_at', models.DateTimeField(db_index=True)),
            ],
            options={
                'verbose_name_plural': 'inquiries',
            },
        ),
        migrations.CreateModel(
            name='Dispute',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('checkout_uuid', models.UUIDField(db_index=True)),
                ('reference', models.CharField(help_text="The provider's id of the dispute.", max_length=255)),
                ('amount', models.BigIntegerField()),
                ('reason', models.CharField(max_length=40)),
                ('status', models.CharField(choices=[('open', 'Open'), ('won', 'Won'), ('lost', 'Lost')], default='open', max_length=4)),
                ('opened_at', models.DateTimeField(help_text='When it was opened, according to the provider.')),
                ('respond_by', models.DateTimeField(blank=True, help_text='Evidence can be submitted until this time.', null=True)),
                ('created_at', models.DateTimeField(help_text='When it was recorded.')),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('payment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='disputes', to='payments.payment')),
            ],
        ),
        migrations.CreateModel(
            name='Booking',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, help_text='The id of the transaction in the ledger.', primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('settled_outside', 'Settled outside'), ('closing', 'No longer owed to the lead')], max_length=15)),
                ('checkout_uuid', models.UUIDField(db_index=True)),
                ('share_uuid', models.UUIDField(blank=True, help_text='The share that the booking is about.', null=True)),
                ('amount', models.BigIntegerField(help_text='Minor units. A reversal is negative.')),
                ('note', models.TextField(blank=True)),
                ('actor', models.CharField(max_length=60)),
                ('created_at', models.DateTimeField()),
                ('reverses', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='payments.booking')),
                ('payment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bookings', to='payments.payment')),
            ],
        ),
        migrations.CreateModel(
            name='LedgerClosing',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('closed_until', models.DateTimeField(help_text='No posting can be added before this day.')),
                ('horizon', models.BigIntegerField(blank=True, help_text='A transaction that can still post before that day has a lower id than this.', null=True)),
                ('summed_until', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='a_ledger_is_closed_in_one_place')],
            },
        ),
        migrations.CreateModel(
            name='Logo',
            fields=[
                ('merchant', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, serialize=False, to='payments.merchant')),
                ('version', models.PositiveIntegerField(help_text="The version of the brand that brought the logo. A part of the logo's address.")),
                ('mark', models.BinaryField(help_text='A small PNG, shown next to the name.')),
                ('card', models.BinaryField(help_text="A large PNG, shown by chats that preview a group's link.")),
                ('changed_at', models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.AddField(
            model_name='payment',
            name='merchant',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant'),
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.CheckConstraint(condition=models.Q(('unpaid_minutes', None), models.Q(('unpaid_minutes__gte', 15), ('unpaid_minutes__lte', 1440)), _connector='OR'), name='an_unpaid_checkout_lives_a_quarter_of_an_hour_to_a_day'),
        ),
        migrations.AddField(
            model_name='ledgersum',
            name='merchant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant'),
        ),
        migrations.AddField(
            model_name='formeraccount',
            name='merchant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant'),
        ),
        migrations.AddField(
            model_name='discrepancy',
            name='merchant',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant'),
        ),
        migrations.AddField(
            model_name='balanceentry',
            name='merchant',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='payments.merchant'),
        ),
        migrations.AddField(
            model_name='movement',
            name='dispute',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='movements', to='payments.dispute'),
        ),
        migrations.AddField(
            model_name='movement',
            name='payment',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='movements', to='payments.payment'),
        ),
        migrations.AddField(
            model_name='operation',
            name='payment',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='operations', to='payments.payment'),
        ),
        migrations.AddField(
            model_name='operation',
            name='resends',
            field=models.ForeignKey(blank=True, db_index=False, help_text='The returned refund that this operation replaces.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='resent_by', to='payments.operation'),
        ),
        migrations.AddField(
            model_name='movement',
            name='operation',
            field=models.ForeignKey(blank=True, help_text='The operation that caused it, of the service or of another.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='movements', to='payments.operation'),
        ),
        migrations.AddField(
            model_name='discrepancy',
            name='operation',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='payments.operation'),
        ),
        migrations.AddField(
            model_name='booking',
            name='operation',
            field=models.ForeignKey(blank=True, help_text='The refund that the card could not accept.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='bookings', to='payments.operation'),
        ),
        migrations.AddField(
            model_name='posting',
            name='merchant',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant'),
        ),
        migrations.AddConstraint(
            model_name='reconciled',
            constraint=models.CheckConstraint(condition=models.Q(('id', 1)), name='the_books_are_read_until_one_moment'),
        ),
        migrations.AddField(
            model_name='switch',
            name='merchant',
            field=models.ForeignKey(blank=True, help_text='Null for all merchants.', null=True, on_delete=django.db.models.deletion.PROTECT, to='payments.merchant'),
        ),
        migrations.AddConstraint(
            model_name='dispute',
            constraint=models.UniqueConstraint(models.F('payment'), models.F('reference'), name='a_dispute_is_recorded_once'),
        ),
        migrations.AddConstraint(
            model_name='dispute',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gt', 0)), name='a_dispute_is_about_something'),
        ),
        migrations.AddConstraint(
            model_name='dispute',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('closed_at', None), ('status', 'open')), models.Q(models.Q(('status', 'open'), _negated=True), ('closed_at__isnull', False)), _connector='OR'), name='a_dispute_has_an_end_when_it_is_decided'),
        ),
        migrations.AddIndex(
            model_name='payment',
            index=models.Index(fields=['subject'], name='payments_pa_subject_e184be_idx'),
        ),
        migrations.AddIndex(
            model_name='payment',
            index=models.Index(fields=['checkout_uuid'], name='payments_pa_checkou_95985e_idx'),
        ),
        migrations.AddIndex(
            model_name='payment',
            index=models.Index(fields=['merchant', 'card_last4', 'created_at'], name='payment_by_card'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gt', 0)), name='a_payment_is_of_something'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'order'), ('subject', models.F('checkout_uuid'))), models.Q(('kind', 'share'), models.Q(('subject', models.F('checkout_uuid')), _negated=True)), _connector='OR'), name='an_orders_payment_is_of_its_checkout'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.UniqueConstraint(models.F('subject'), condition=models.Q(('is_live', True)), name='one_live_payment_per_subject'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.UniqueConstraint(models.F('provider_reference'), condition=models.Q(('provider_reference', ''), _negated=True), name='a_payment_has_its_own_provider_reference'),
        ),
        migrations.AddIndex(
            model_name='ledgersum',
            index=models.Index(models.F('begin'), name='ledger_sum_begin'),
        ),
        migrations.AddConstraint(
            model_name='ledgersum',
            constraint=models.UniqueConstraint(fields=('merchant', 'account', 'currency', 'begin', 'end'), include=('amount',), name='a_day_or_month_is_summed_once'),
        ),
        migrations.AddConstraint(
            model_name='ledgersum',
            constraint=models.CheckConstraint(condition=models.Q(('end__gt', models.F('begin'))), name='a_sum_is_of_some_days'),
        ),
        migrations.AddConstraint(
            model_name='formeraccount',
            constraint=models.UniqueConstraint(fields=('merchant', 'provider_account'), name='a_former_account_is_kept_once'),
        ),
        migrations.AddIndex(
            model_name='balanceentry',
            index=models.Index(models.F('operation'), condition=models.Q(('operation__isnull', False)), name='balance_of_operation'),
        ),
        migrations.AddIndex(
            model_name='balanceentry',
            index=models.Index(condition=models.Q(('kind', 'payout')), fields=['merchant', '-made_at', '-id'], name='balance_payouts'),
        ),
        migrations.AddIndex(
            model_name='balanceentry',
            index=models.Index(models.F('merchant'), models.F('payout'), condition=models.Q(('payout', ''), _negated=True), name='balance_in_payout'),
        ),
        migrations.AddConstraint(
            model_name='balanceentry',
            constraint=models.UniqueConstraint(fields=('account', 'reference'), name='a_line_of_the_balance_is_kept_once'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(models.F('next_attempt_at'), condition=models.Q(('state__in', ['planned', 'in_flight', 'needs_action', 'pending', 'unknown'])), name='operation_due'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(models.F('ended_at'), condition=models.Q(('ended_at__isnull', False)), name='operation_ended'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(models.F('refund_uuid'), condition=models.Q(('refund_uuid__isnull', False)), name='operation_refund'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(models.F('share_uuid'), condition=models.Q(('share_uuid__isnull', False)), name='operation_share'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(models.F('resends'), condition=models.Q(('resends__isnull', False)), name='operation_resends'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gt', 0)), name='an_operation_is_of_something'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('purpose__in', ['payment', 'outside']), ('refund_uuid', None), ('share_uuid', None)), models.Q(('purpose', 'reimbursement'), ('refund_uuid', None), ('share_uuid__isnull', False)), models.Q(('purpose', 'refund_part'), ('refund_uuid__isnull', False), ('share_uuid', None)), _connector='OR'), name='an_operation_says_what_it_is_for'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('resends', None), ('kind', 'refund'), _connector='OR'), name='only_a_refund_is_sent_again'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.UniqueConstraint(models.F('payment'), condition=models.Q(('is_open', True), models.Q(('kind', 'refund'), _negated=True)), name='one_open_operation_per_payment'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.UniqueConstraint(models.F('payment'), condition=models.Q(('kind', 'capture'), ('state', 'succeeded')), name='one_succeeded_capture_per_payment'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', False), ('state__in', ['succeeded', 'declined', 'failed'])), models.Q(models.Q(('state__in', ['succeeded', 'declined', 'failed']), _negated=True), ('ended_at', None)), _connector='OR'), name='an_operation_has_an_end_when_it_ended'),
        ),
        migrations.AddIndex(
            model_name='movement',
            index=models.Index(models.F('dispute'), condition=models.Q(('dispute__isnull', False)), name='movement_of_dispute'),
        ),
        migrations.AddConstraint(
            model_name='movement',
            constraint=models.UniqueConstraint(models.F('payment'), models.F('kind'), models.F('reference'), name='a_fact_is_recorded_once'),
        ),
        migrations.AddConstraint(
            model_name='movement',
            constraint=models.UniqueConstraint(models.F('payment'), condition=models.Q(('kind', 'captured')), name='a_card_is_charged_once'),
        ),
        migrations.AddConstraint(
            model_name='movement',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('amount__gt', 0), ('kind__in', ['captured', 'refund_returned', 'dispute_reinstated'])), models.Q(('amount__lt', 0), ('kind__in', ['refunded', 'dispute_withdrawn'])), _connector='OR'), name='a_movement_goes_its_way'),
        ),
        migrations.AddConstraint(
            model_name='movement',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind__in', ['captured', 'refunded', 'refund_returned']), ('operation__isnull', False)), models.Q(('dispute__isnull', False), ('kind__in', ['dispute_withdrawn', 'dispute_reinstated'])), _connector='OR'), name='a_movement_has_its_cause'),
        ),
        migrations.AddIndex(
            model_name='discrepancy',
            index=models.Index(models.F('created_at'), condition=models.Q(('mailed_at', None)), name='discrepancy_to_mail'),
        ),
        migrations.AddConstraint(
            model_name='discrepancy',
            constraint=models.UniqueConstraint(models.F('kind'), models.F('subject'), condition=models.Q(('closed_at', None)), name='one_open_discrepancy_per_kind_and_subject', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='booking',
            constraint=models.CheckConstraint(condition=models.Q(('amount', 0), _negated=True), name='a_booking_is_of_something'),
        ),
        migrations.AddConstraint(
            model_name='booking',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('amount__gt', 0), ('reverses', None)), models.Q(('amount__lt', 0), ('reverses__isnull', False)), _connector='OR'), name='a_reversal_takes_back'),
        ),
        migrations.AddConstraint(
            model_name='booking',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'settled_outside'), ('operation__isnull', False)), models.Q(('kind', 'closing'), ('operation', None), ('share_uuid__isnull', False)), _connector='OR'), name='a_booking_says_what_it_is_for'),
        ),
        migrations.AddIndex(
            model_name='posting',
            index=models.Index(fields=['checkout_uuid'], name='payments_po_checkou_0c6568_idx'),
        ),
        migrations.AddIndex(
            model_name='posting',
            index=models.Index(fields=['merchant', 'account', 'created_at', 'id'], include=('amount', 'currency'), name='posting_moved'),
        ),
        migrations.AddConstraint(
            model_name='posting',
            constraint=models.UniqueConstraint(models.F('transaction'), models.F('account'), name='a_transaction_posts_once_per_account'),
        ),
        migrations.AddConstraint(
            model_name='posting',
            constraint=models.CheckConstraint(condition=models.Q(('amount', 0), _negated=True), name='a_posting_moves_something'),
        ),
        migrations.AddConstraint(
            model_name='switch',
            constraint=models.UniqueConstraint(models.F('merchant'), name='one_switch_per_merchant', nulls_distinct=False),
        ),
        migrations.AddIndex(
            model_name='dispute',
            index=models.Index(models.OrderBy(models.F('closed_at'), descending=True), models.OrderBy(models.F('respond_by')), models.OrderBy(models.F('id'), descending=True), name='dispute_urgency'),
        ),
        migrations.CreateModel(
            name='LastBackup',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('made_at', models.DateTimeField(help_text="When the back-up began, by the database's clock.")),
            ],
            options={
                'verbose_name': 'last back-up',
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='one_back_up_is_the_last')],
            },
        ),
    ]
