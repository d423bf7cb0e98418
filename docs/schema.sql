-- The schema of our tables, functions and triggers. `make schema` writes it from the migrations.
-- Left out: the tables of libraries, and the partitions of single days, which are copies of the default ones.

CREATE FUNCTION public.advance_history(advanced uuid, seconds integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE touched integer;
BEGIN
    IF seconds NOT BETWEEN 1 AND 864000 THEN
        RAISE EXCEPTION 'time passes by one second to ten days' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM set_config('checkout.advanced', advanced::text, true);
    UPDATE payments_movement SET occurred_at = occurred_at - make_interval(secs => seconds),
        recorded_at = recorded_at - make_interval(secs => seconds)
    WHERE checkout_uuid = advanced;
    UPDATE payments_booking SET created_at = created_at - make_interval(secs => seconds)
    WHERE checkout_uuid = advanced;
    UPDATE portal_checkoutnote SET created_at = created_at - make_interval(secs => seconds)
    WHERE checkout_uuid = advanced;
    UPDATE checkout_change SET created_at = created_at - make_interval(secs => seconds)
    WHERE checkout_id = advanced;
    GET DIAGNOSTICS touched = ROW_COUNT;
    PERFORM set_config('checkout.advanced', '', true);
    RETURN touched;
END $$;

CREATE FUNCTION public.append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE FUNCTION public.checkout_moves() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status = 'created' THEN RETURN NEW; END IF;
        RAISE EXCEPTION 'a checkout begins as created, not as %', NEW.status
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (OLD.status, NEW.status) IN (
        ('created', 'authorized'),
        ('created', 'voided'),
        ('created', 'expired'),
        ('authorized', 'captured'),
        ('authorized', 'voided'),
        ('captured', 'refunding'),
        ('refunding', 'refunded'),
        ('refunding', 'captured')
    ) THEN RETURN NEW; END IF;
    RAISE EXCEPTION 'a checkout never goes from % to %', OLD.status, NEW.status
        USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE FUNCTION public.digest_opt_in_again(opt_in uuid, former text, digest text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $_$
BEGIN
    IF digest !~ '^[0-9a-f]{64}$' THEN
        RAISE EXCEPTION 'this is not a digest' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    UPDATE hosted_page_optin SET email_digest = digest WHERE id = opt_in AND email_digest = former;
    RETURN FOUND;
END $_$;

CREATE FUNCTION public.drop_partition(parent name, before timestamp with time zone) RETURNS name
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET lock_timeout TO '300ms'
    AS $_$
DECLARE
    old name;
BEGIN
    IF before > clock_timestamp() - interval '7 days' THEN
        RAISE EXCEPTION 'nothing of % is dropped that is younger than a week', parent
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT relname INTO old
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    JOIN pg_partitioned_table ON partrelid = inhparent AND partstrat = 'r'
    CROSS JOIN LATERAL regexp_match(
        pg_get_expr(relpartbound, inhrelid), $re$FROM \('([0-9a-f-]+)'\) TO \('([0-9a-f-]+)'\)$re$) AS bounds
    WHERE inhparent = to_regclass(quote_ident(parent)) AND bounds[2]::uuid <= first_id(before)
      AND (parent NOT LIKE 'webhooks%' OR NOT EXISTS (
          SELECT FROM webhooks_delivery_pending d WHERE d.id >= bounds[1]::uuid AND d.id < bounds[2]::uuid))
    ORDER BY bounds[2]::uuid LIMIT 1;
    IF old IS NOT NULL THEN
        EXECUTE format('DROP TABLE %I', old);
    END IF;
    RETURN old;
END $_$;

CREATE FUNCTION public.erase_opt_ins(people uuid[], emptied text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE touched integer;
BEGIN
    IF EXISTS (
        SELECT FROM checkout_merchantcustomer m JOIN checkout_customer c ON c.id = m.customer_id
        WHERE m.id = ANY(people) AND c.erased_at IS NULL
    ) THEN
        RAISE EXCEPTION 'this person is not erased' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    UPDATE hosted_page_optin SET email = emptied, email_digest = '' WHERE person_id = ANY(people);
    GET DIAGNOSTICS touched = ROW_COUNT;
    RETURN touched;
END $$;

CREATE FUNCTION public.first_id(moment timestamp with time zone) RETURNS uuid
    LANGUAGE sql IMMUTABLE
    SET "TimeZone" TO 'UTC'
    AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

CREATE FUNCTION public.former_account_is_kept() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO payments_formeraccount (merchant_id, provider_account) VALUES (OLD.id, OLD.provider_account)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE FUNCTION public.is_advanced(checkout_uuid uuid) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT to_regprocedure('public.advance_history(uuid, integer)') IS NOT NULL
        AND coalesce(current_setting('checkout.advanced', true) = checkout_uuid::text, false)
$$;

CREATE FUNCTION public.make_partition(parent name, starts_on date, ends_on date) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET lock_timeout TO '300ms'
    AS $_$
DECLARE
    made name := parent || '_' || to_char(starts_on, 'YYYYMMDD');
    rest name := parent || '_default';
    today date := clock_timestamp()::date;
    is_caught boolean;
    options text;
BEGIN
    IF starts_on NOT BETWEEN today - 150 AND today + 15 OR ends_on - starts_on NOT BETWEEN 1 AND 7
        OR NOT EXISTS (
            SELECT FROM pg_partitioned_table
            WHERE partrelid = to_regclass(quote_ident(parent)) AND partdefid = to_regclass(quote_ident(rest)))
    THEN
        RAISE EXCEPTION 'no partition of % is made from % to %', parent, starts_on, ends_on
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('make_partition'));
    IF to_regclass(quote_ident(made)) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE id >= $1 AND id < $2)', rest)
        INTO is_caught USING first_id(starts_on), first_id(ends_on);
    IF is_caught THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', made, rest);
    SELECT array_to_string(reloptions, ', ') INTO options FROM pg_class WHERE oid = to_regclass(quote_ident(rest));
    IF options <> '' THEN
        EXECUTE format('ALTER TABLE %I SET (%s)', made, options);
    END IF;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
        parent, made, first_id(starts_on), first_id(ends_on));
    RETURN true;
END $_$;

CREATE FUNCTION public.posting_balances() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF (SELECT sum(amount) FROM payments_posting
        WHERE transaction = NEW.transaction AND currency = NEW.currency) <> 0 THEN
        RAISE EXCEPTION 'the postings of transaction % do not sum to zero', NEW.transaction
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION public.posting_goes_into_an_open_day() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    closed timestamptz;
BEGIN
    PERFORM pg_current_xact_id();
    SELECT closed_until INTO closed FROM payments_ledgerclosing;
    IF NEW.created_at < closed THEN
        NEW.created_at := greatest(clock_timestamp(), closed);
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION public.share_moves() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status = 'draft' THEN RETURN NEW; END IF;
        RAISE EXCEPTION 'a share begins as draft, not as %', NEW.status
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (OLD.status, NEW.status) IN (
        ('draft', 'open'),
        ('draft', 'cancelled'),
        ('open', 'paying'),
        ('open', 'declined'),
        ('open', 'expired'),
        ('open', 'cancelled'),
        ('declined', 'open'),
        ('declined', 'cancelled'),
        ('cancelled', 'open'),
        ('paying', 'open'),
        ('paying', 'paid'),
        ('paying', 'pledged'),
        ('pledged', 'paying'),
        ('pledged', 'open'),
        ('paid', 'reimbursed'),
        ('paid', 'refunded'),
        ('reimbursed', 'refunded'),
        ('reimbursed', 'paid'),
        ('refunded', 'paid')
    ) THEN RETURN NEW; END IF;
    RAISE EXCEPTION 'a share never goes from % to %', OLD.status, NEW.status
        USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TABLE public.bank_banknotification (
    id uuid NOT NULL,
    verdict character varying(12) NOT NULL,
    due_at timestamp with time zone,
    attempts smallint NOT NULL,
    call_id uuid,
    dispute_id uuid,
    CONSTRAINT bank_banknotification_attempts_check CHECK ((attempts >= 0))
);

CREATE TABLE public.bank_brokenkey (
    key uuid NOT NULL
);

CREATE TABLE public.bank_call (
    key uuid NOT NULL,
    reference uuid,
    is_remembered boolean NOT NULL,
    kind character varying(10) NOT NULL,
    amount bigint NOT NULL,
    verdict character varying(12) NOT NULL,
    reason character varying(40) NOT NULL,
    settles_at timestamp with time zone,
    fails_with character varying(40) NOT NULL,
    returns_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    refund uuid,
    share uuid,
    has_returned boolean DEFAULT false NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    charge_id uuid NOT NULL
);

CREATE UNLOGGED TABLE public.bank_cardsession (
    id uuid NOT NULL,
    subject uuid NOT NULL,
    return_url character varying(1000) NOT NULL,
    page jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE UNLOGGED TABLE public.bank_cardtoken (
    id uuid NOT NULL,
    digest character varying(64) NOT NULL,
    subject uuid NOT NULL,
    last4 character varying(4) NOT NULL,
    brand character varying(20) NOT NULL,
    fingerprint character varying(64) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone
);

CREATE TABLE public.bank_charge (
    id uuid NOT NULL,
    payment uuid NOT NULL,
    account uuid NOT NULL,
    token_id uuid NOT NULL,
    subject uuid,
    last4 character varying(4) DEFAULT ''::character varying NOT NULL,
    amount bigint NOT NULL,
    refunded_amount bigint NOT NULL,
    currency character varying(3) NOT NULL,
    state character varying(10) NOT NULL,
    return_url character varying(1000) NOT NULL,
    voids_failed smallint NOT NULL,
    silent_until timestamp with time zone,
    CONSTRAINT a_charge_gives_back_at_most_what_it_took CHECK (((refunded_amount >= 0) AND (refunded_amount <= amount))),
    CONSTRAINT bank_charge_voids_failed_check CHECK ((voids_failed >= 0))
);

CREATE TABLE public.bank_dispute (
    id uuid NOT NULL,
    amount bigint NOT NULL,
    reason character varying(40) NOT NULL,
    status character varying(4) NOT NULL,
    opens_at timestamp with time zone NOT NULL,
    respond_by timestamp with time zone NOT NULL,
    decided_at timestamp with time zone,
    is_inquiry boolean DEFAULT false NOT NULL,
    moved_at timestamp with time zone[] DEFAULT '{}'::timestamp with time zone[] NOT NULL,
    is_reported boolean NOT NULL,
    charge_id uuid NOT NULL
);

CREATE TABLE public.bank_fault (
    id uuid NOT NULL,
    verb character varying(10) NOT NULL,
    mode character varying(20) NOT NULL,
    times integer NOT NULL,
    CONSTRAINT bank_fault_times_check CHECK ((times >= 0))
);

CREATE TABLE public.checkout_apicall (
    id uuid NOT NULL,
    merchant_id uuid NOT NULL,
    client_uuid uuid NOT NULL,
    checkout_uuid uuid,
    method character varying(8) NOT NULL,
    path character varying(300) NOT NULL,
    request_id character varying(64) NOT NULL,
    status smallint NOT NULL,
    error_code character varying(60) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    param character varying(100) DEFAULT ''::character varying NOT NULL,
    duration_ms integer,
    ignored_fields character varying(700) DEFAULT ''::character varying NOT NULL,
    CONSTRAINT checkout_apicall_duration_ms_check CHECK ((duration_ms >= 0)),
    CONSTRAINT checkout_apicall_status_check CHECK ((status >= 0))
)
PARTITION BY RANGE (id);

CREATE TABLE public.checkout_apicall_default (
    id uuid CONSTRAINT checkout_apicall_id_not_null NOT NULL,
    merchant_id uuid CONSTRAINT checkout_apicall_merchant_id_not_null NOT NULL,
    client_uuid uuid CONSTRAINT checkout_apicall_client_uuid_not_null NOT NULL,
    checkout_uuid uuid,
    method character varying(8) CONSTRAINT checkout_apicall_method_not_null NOT NULL,
    path character varying(300) CONSTRAINT checkout_apicall_path_not_null NOT NULL,
    request_id character varying(64) CONSTRAINT checkout_apicall_request_id_not_null NOT NULL,
    status smallint CONSTRAINT checkout_apicall_status_not_null NOT NULL,
    error_code character varying(60) CONSTRAINT checkout_apicall_error_code_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT checkout_apicall_created_at_not_null NOT NULL,
    param character varying(100) DEFAULT ''::character varying CONSTRAINT checkout_apicall_param_not_null NOT NULL,
    duration_ms integer,
    ignored_fields character varying(700) DEFAULT ''::character varying CONSTRAINT checkout_apicall_ignored_fields_not_null NOT NULL,
    CONSTRAINT checkout_apicall_duration_ms_check CHECK ((duration_ms >= 0)),
    CONSTRAINT checkout_apicall_status_check CHECK ((status >= 0))
);

CREATE TABLE public.checkout_bill (
    checkout_id uuid NOT NULL,
    lines jsonb NOT NULL
);

CREATE TABLE public.checkout_change (
    id uuid NOT NULL,
    origin character varying(10) NOT NULL,
    "to" character varying(10) NOT NULL,
    actor character varying(60) NOT NULL,
    request_id character varying(64) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    checkout_id uuid NOT NULL
);

CREATE TABLE public.checkout_checkout (
    id uuid NOT NULL,
    merchant_order_id character varying(255) NOT NULL,
    status character varying(10) NOT NULL,
    amount bigint NOT NULL,
    currency character varying(3) NOT NULL,
    metadata jsonb,
    return_url character varying(2048) NOT NULL,
    cancel_url character varying(2048) NOT NULL,
    people smallint,
    language character varying(8) DEFAULT ''::character varying NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    payable_until timestamp with time zone NOT NULL,
    authorized_at timestamp with time zone,
    capture_before timestamp with time zone,
    captured_at timestamp with time zone,
    voided_at timestamp with time zone,
    void_reason character varying(20) NOT NULL,
    cancel_note character varying(255) NOT NULL,
    expired_at timestamp with time zone,
    refunded_amount bigint NOT NULL,
    last_refund_at timestamp with time zone,
    merchant_id uuid NOT NULL,
    payment_id uuid,
    lead_id uuid,
    CONSTRAINT a_checkout_costs_something CHECK ((amount > 0)),
    CONSTRAINT a_held_checkout_has_a_payment_and_a_deadline CHECK ((((authorized_at IS NULL) AND ((status)::text = ANY ((ARRAY['created'::character varying, 'expired'::character varying])::text[]))) OR ((status)::text = 'voided'::text) OR ((authorized_at IS NOT NULL) AND (capture_before IS NOT NULL) AND (payment_id IS NOT NULL) AND ((status)::text = ANY ((ARRAY['authorized'::character varying, 'captured'::character varying, 'refunding'::character varying, 'refunded'::character varying])::text[]))))),
    CONSTRAINT a_refund_returns_everything CHECK ((((last_refund_at IS NOT NULL) AND (refunded_amount = amount) AND ((status)::text = 'refunded'::text)) OR ((NOT ((status)::text = 'refunded'::text)) AND (last_refund_at IS NULL) AND (refunded_amount = 0)))),
    CONSTRAINT a_voided_checkout_says_when_and_why CHECK (((((status)::text = 'voided'::text) AND (voided_at IS NOT NULL) AND (NOT ((void_reason)::text = ''::text))) OR ((NOT ((status)::text = 'voided'::text)) AND ((void_reason)::text = ''::text) AND (voided_at IS NULL)))),
    CONSTRAINT an_expired_checkout_says_when CHECK ((((expired_at IS NOT NULL) AND ((status)::text = 'expired'::text)) OR ((NOT ((status)::text = 'expired'::text)) AND (expired_at IS NULL)))),
    CONSTRAINT captured_at_tells_that_money_moved CHECK ((((captured_at IS NOT NULL) AND ((status)::text = ANY ((ARRAY['captured'::character varying, 'refunding'::character varying, 'refunded'::character varying])::text[]))) OR ((NOT ((status)::text = ANY ((ARRAY['captured'::character varying, 'refunding'::character varying, 'refunded'::character varying])::text[]))) AND (captured_at IS NULL)))),
    CONSTRAINT checkout_checkout_people_check CHECK ((people >= 0))
);

CREATE TABLE public.checkout_customer (
    id uuid NOT NULL,
    phone text,
    name character varying(60) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    erased_at timestamp with time zone,
    cards_erased_at timestamp with time zone
);

CREATE TABLE public.checkout_grouplink (
    checkout_id uuid NOT NULL,
    token text NOT NULL,
    token_digest character varying(64) NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.checkout_idempotencykey (
    id uuid NOT NULL,
    key character varying(255) NOT NULL,
    request_digest character varying(64) NOT NULL,
    checkout_uuid uuid,
    status smallint,
    body bytea,
    created_at timestamp with time zone NOT NULL,
    merchant_id uuid NOT NULL,
    CONSTRAINT checkout_idempotencykey_status_check CHECK ((status >= 0))
);

CREATE TABLE public.checkout_leadnotification (
    id uuid NOT NULL,
    kind character varying(9) NOT NULL,
    share_uuid uuid,
    due_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    checkout_id uuid NOT NULL
);

CREATE TABLE public.checkout_merchantcustomer (
    id uuid NOT NULL,
    customer_id uuid,
    merchant_id uuid NOT NULL
);

CREATE TABLE public.checkout_paymentrequest (
    id uuid NOT NULL,
    "position" smallint NOT NULL,
    amount bigint NOT NULL,
    name character varying(60) NOT NULL,
    phone text NOT NULL,
    status character varying(10) NOT NULL,
    token text NOT NULL,
    token_digest character varying(64) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    paid_at timestamp with time zone,
    ended_at timestamp with time zone,
    next_reminder_at timestamp with time zone,
    claim_digest character varying(64) DEFAULT ''::character varying NOT NULL,
    claim_name character varying(30) DEFAULT ''::character varying NOT NULL,
    claimed_at timestamp with time zone,
    claimed_until timestamp with time zone,
    checkout_id uuid NOT NULL,
    mate_id uuid,
    payment_id uuid,
    replaced_at timestamp with time zone,
    units integer[] DEFAULT '{}'::integer[] NOT NULL,
    CONSTRAINT a_paid_share_has_a_payment CHECK ((((paid_at IS NOT NULL) AND (payment_id IS NOT NULL) AND ((status)::text = ANY ((ARRAY['paid'::character varying, 'reimbursed'::character varying, 'refunded'::character varying])::text[]))) OR ((NOT ((status)::text = ANY ((ARRAY['paid'::character varying, 'reimbursed'::character varying, 'refunded'::character varying])::text[]))) AND (paid_at IS NULL) AND (payment_id IS NULL)))),
    CONSTRAINT a_pay_link_ends CHECK ((((status)::text = ANY ((ARRAY['draft'::character varying, 'cancelled'::character varying])::text[])) OR (expires_at IS NOT NULL))),
    CONSTRAINT a_replaced_share_is_cancelled CHECK (((replaced_at IS NULL) OR ((status)::text = 'cancelled'::text))),
    CONSTRAINT a_share_is_of_something CHECK ((amount > 0)),
    CONSTRAINT checkout_paymentrequest_position_check CHECK (("position" >= 0))
);

CREATE TABLE public.checkout_prefill (
    checkout_id uuid NOT NULL,
    phone text NOT NULL,
    name text NOT NULL,
    locale character varying(35) NOT NULL
);

CREATE TABLE public.checkout_proofrun (
    id uuid NOT NULL,
    is_scheduled boolean NOT NULL,
    next_uuid uuid,
    next_month date,
    checkout_count bigint NOT NULL,
    posting_count bigint NOT NULL,
    breach_count bigint NOT NULL,
    begun_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone
);

CREATE TABLE public.checkout_refund (
    id uuid NOT NULL,
    merchant_refund_ref character varying(255) NOT NULL,
    reason character varying(500),
    amount bigint NOT NULL,
    status character varying(10) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone,
    failure_reason character varying(40),
    checkout_id uuid NOT NULL,
    merchant_id uuid NOT NULL
);

CREATE TABLE public.checkout_replacedlink (
    id bigint NOT NULL,
    token_digest character varying(64) NOT NULL,
    replaced_at timestamp with time zone NOT NULL,
    share_id uuid NOT NULL
);

ALTER TABLE public.checkout_replacedlink ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.checkout_replacedlink_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE UNLOGGED TABLE public.hosted_page_cardtry (
    id uuid NOT NULL,
    subject uuid NOT NULL,
    card_token character varying(255) NOT NULL,
    phone_digest character varying(64) NOT NULL,
    address_digest character varying(64) NOT NULL,
    site_digest character varying(64) DEFAULT ''::character varying NOT NULL,
    is_counted boolean NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.hosted_page_cspreport (
    id uuid NOT NULL,
    page character varying(20) NOT NULL,
    directive character varying(20) NOT NULL,
    blocked character varying(100) NOT NULL,
    first_seen timestamp with time zone NOT NULL,
    last_seen timestamp with time zone NOT NULL,
    count bigint NOT NULL,
    CONSTRAINT hosted_page_cspreport_count_check CHECK ((count >= 0))
);

CREATE TABLE public.hosted_page_knownbrowser (
    id uuid NOT NULL,
    token_digest character varying(64) NOT NULL,
    phone text NOT NULL,
    proven_at timestamp with time zone NOT NULL
);

CREATE TABLE public.hosted_page_optin (
    id uuid NOT NULL,
    checkout_uuid uuid NOT NULL,
    share_uuid uuid,
    email text NOT NULL,
    email_digest character varying(64) NOT NULL,
    placement character varying(20) NOT NULL,
    opted_in_at timestamp with time zone NOT NULL,
    person_id uuid NOT NULL,
    text_id uuid NOT NULL
);

CREATE TABLE public.hosted_page_optintext (
    id uuid NOT NULL,
    version integer NOT NULL,
    language character varying(8) NOT NULL,
    is_ours boolean NOT NULL,
    text character varying(500) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    merchant_id uuid NOT NULL,
    CONSTRAINT hosted_page_optintext_version_check CHECK ((version >= 0))
);

CREATE TABLE public.hosted_page_payersignin (
    id uuid NOT NULL,
    subject uuid NOT NULL,
    customer_uuid uuid NOT NULL,
    is_proven boolean NOT NULL,
    began_at timestamp with time zone NOT NULL
);

CREATE TABLE public.hosted_page_sharetake (
    id uuid NOT NULL,
    address_digest character varying(64) NOT NULL,
    site_digest character varying(64) DEFAULT ''::character varying NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE UNLOGGED TABLE public.hosted_page_signincode (
    id uuid NOT NULL,
    subject uuid NOT NULL,
    phone text NOT NULL,
    browser_digest character varying(64) NOT NULL,
    code_digest character varying(64) NOT NULL,
    tries smallint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT hosted_page_signincode_tries_check CHECK ((tries >= 0))
);

CREATE TABLE public.hosted_page_smsday (
    id uuid NOT NULL,
    day date NOT NULL,
    count integer NOT NULL,
    warned_at timestamp with time zone,
    merchant_id uuid,
    CONSTRAINT hosted_page_smsday_count_check CHECK ((count >= 0))
);

CREATE TABLE public.hosted_page_smsmessage (
    id uuid NOT NULL,
    kind character varying(10) NOT NULL,
    checkout_uuid uuid NOT NULL,
    subject uuid NOT NULL,
    phone text,
    body text,
    phone_digest character varying(64) NOT NULL,
    range_digest character varying(64) NOT NULL,
    address_digest character varying(64) NOT NULL,
    site_digest character varying(64) DEFAULT ''::character varying NOT NULL,
    created_at timestamp with time zone NOT NULL,
    is_counted boolean NOT NULL,
    due_at timestamp with time zone,
    ends_at timestamp with time zone NOT NULL,
    claimed_at timestamp with time zone,
    sent_at timestamp with time zone,
    ended_at timestamp with time zone,
    receipt character varying(11) NOT NULL,
    refusal character varying(32) NOT NULL,
    merchant_id uuid NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE public.hosted_page_smsstop (
    number character varying(30) NOT NULL,
    key_mark character varying(8) DEFAULT ''::character varying NOT NULL,
    stopped_at timestamp with time zone NOT NULL
);

CREATE TABLE public.payments_balanceentry (
    id uuid NOT NULL,
    account character varying(64) NOT NULL,
    reference character varying(255) NOT NULL,
    kind character varying(7) NOT NULL,
    amount bigint NOT NULL,
    fee bigint NOT NULL,
    currency character varying(3) NOT NULL,
    made_at timestamp with time zone NOT NULL,
    available_at timestamp with time zone,
    checkout_uuid uuid,
    operation uuid,
    payout character varying(255) NOT NULL,
    merchant_id uuid NOT NULL
);

CREATE TABLE public.payments_booking (
    id uuid NOT NULL,
    kind character varying(15) NOT NULL,
    checkout_uuid uuid NOT NULL,
    share_uuid uuid,
    amount bigint NOT NULL,
    note text NOT NULL,
    actor character varying(60) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    reverses_id uuid,
    payment_id uuid NOT NULL,
    operation_id uuid,
    CONSTRAINT a_booking_is_of_something CHECK ((NOT (amount = 0))),
    CONSTRAINT a_booking_says_what_it_is_for CHECK (((((kind)::text = 'settled_outside'::text) AND (operation_id IS NOT NULL)) OR (((kind)::text = 'closing'::text) AND (operation_id IS NULL) AND (share_uuid IS NOT NULL)))),
    CONSTRAINT a_reversal_takes_back CHECK ((((amount > 0) AND (reverses_id IS NULL)) OR ((amount < 0) AND (reverses_id IS NOT NULL))))
);

CREATE TABLE public.payments_databasemark (
    id smallint NOT NULL,
    server character varying(100) NOT NULL,
    word character varying(100) NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    repair_since timestamp with time zone,
    CONSTRAINT a_database_has_one_mark CHECK ((id = 1)),
    CONSTRAINT payments_databasemark_id_check CHECK ((id >= 0))
);

CREATE TABLE public.payments_discrepancy (
    id uuid NOT NULL,
    kind character varying(60) NOT NULL,
    subject uuid,
    facts jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    mailed_at timestamp with time zone,
    closed_at timestamp with time zone,
    note text NOT NULL,
    merchant_id uuid,
    operation_id uuid
);

CREATE TABLE public.payments_dispute (
    id uuid NOT NULL,
    checkout_uuid uuid NOT NULL,
    reference character varying(255) NOT NULL,
    amount bigint NOT NULL,
    reason character varying(40) NOT NULL,
    status character varying(4) NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    respond_by timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    closed_at timestamp with time zone,
    payment_id uuid NOT NULL,
    CONSTRAINT a_dispute_has_an_end_when_it_is_decided CHECK ((((closed_at IS NULL) AND ((status)::text = 'open'::text)) OR ((NOT ((status)::text = 'open'::text)) AND (closed_at IS NOT NULL)))),
    CONSTRAINT a_dispute_is_about_something CHECK ((amount > 0))
);

CREATE TABLE public.payments_formeraccount (
    id bigint NOT NULL,
    provider_account character varying(64) NOT NULL,
    merchant_id uuid NOT NULL
);

ALTER TABLE public.payments_formeraccount ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.payments_formeraccount_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.payments_inquiry (
    payment_id uuid NOT NULL,
    due_at timestamp with time zone NOT NULL
);

CREATE TABLE public.payments_lastbackup (
    id smallint NOT NULL,
    made_at timestamp with time zone NOT NULL,
    CONSTRAINT one_back_up_is_the_last CHECK ((id = 1)),
    CONSTRAINT payments_lastbackup_id_check CHECK ((id >= 0))
);

CREATE TABLE public.payments_ledgerclosing (
    id smallint NOT NULL,
    closed_until timestamp with time zone NOT NULL,
    horizon bigint,
    summed_until timestamp with time zone,
    CONSTRAINT a_ledger_is_closed_in_one_place CHECK ((id = 1)),
    CONSTRAINT payments_ledgerclosing_id_check CHECK ((id >= 0))
);

CREATE TABLE public.payments_ledgersum (
    id uuid NOT NULL,
    account character varying(10) NOT NULL,
    currency character varying(3) NOT NULL,
    begin date NOT NULL,
    "end" date NOT NULL,
    amount bigint NOT NULL,
    merchant_id uuid NOT NULL,
    CONSTRAINT a_sum_is_of_some_days CHECK (("end" > begin))
);

CREATE TABLE public.payments_logo (
    merchant_id uuid NOT NULL,
    version integer NOT NULL,
    mark bytea NOT NULL,
    card bytea NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    CONSTRAINT payments_logo_version_check CHECK ((version >= 0))
);

CREATE TABLE public.payments_merchant (
    id uuid NOT NULL,
    name character varying(120) NOT NULL,
    country character varying(2) NOT NULL,
    brand_colour character varying(7) NOT NULL,
    brand_version integer NOT NULL,
    logo_version integer,
    logo_width smallint,
    support_url character varying(200) NOT NULL,
    terms_url character varying(200) NOT NULL,
    privacy_url character varying(200) NOT NULL,
    shop_url character varying(200) DEFAULT ''::character varying NOT NULL,
    opt_in_enabled boolean NOT NULL,
    time_zone character varying(64) NOT NULL,
    provider_account character varying(64) NOT NULL,
    return_hosts character varying(253)[] NOT NULL,
    unpaid_minutes smallint,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT an_unpaid_checkout_lives_a_quarter_of_an_hour_to_a_day CHECK (((unpaid_minutes IS NULL) OR ((unpaid_minutes >= 15) AND (unpaid_minutes <= 1440)))),
    CONSTRAINT payments_merchant_brand_version_check CHECK ((brand_version >= 0)),
    CONSTRAINT payments_merchant_logo_version_check CHECK ((logo_version >= 0)),
    CONSTRAINT payments_merchant_logo_width_check CHECK ((logo_width >= 0)),
    CONSTRAINT payments_merchant_unpaid_minutes_check CHECK ((unpaid_minutes >= 0))
);

CREATE TABLE public.payments_movement (
    id uuid NOT NULL,
    checkout_uuid uuid NOT NULL,
    kind character varying(18) NOT NULL,
    amount bigint NOT NULL,
    reference character varying(280) NOT NULL,
    bearer character varying(10) NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    dispute_id uuid,
    payment_id uuid NOT NULL,
    operation_id uuid,
    CONSTRAINT a_movement_goes_its_way CHECK ((((amount > 0) AND ((kind)::text = ANY ((ARRAY['captured'::character varying, 'refund_returned'::character varying, 'dispute_reinstated'::character varying])::text[]))) OR ((amount < 0) AND ((kind)::text = ANY ((ARRAY['refunded'::character varying, 'dispute_withdrawn'::character varying])::text[]))))),
    CONSTRAINT a_movement_has_its_cause CHECK (((((kind)::text = ANY ((ARRAY['captured'::character varying, 'refunded'::character varying, 'refund_returned'::character varying])::text[])) AND (operation_id IS NOT NULL)) OR ((dispute_id IS NOT NULL) AND ((kind)::text = ANY ((ARRAY['dispute_withdrawn'::character varying, 'dispute_reinstated'::character varying])::text[])))))
);

CREATE TABLE public.payments_operation (
    id uuid NOT NULL,
    kind character varying(10) NOT NULL,
    purpose character varying(13) NOT NULL,
    amount bigint NOT NULL,
    state character varying(12) NOT NULL,
    reference character varying(255) NOT NULL,
    reason character varying(40) NOT NULL,
    action_url character varying(2048) NOT NULL,
    refund_uuid uuid,
    share_uuid uuid,
    attempts integer NOT NULL,
    first_sent_at timestamp with time zone,
    last_sent_at timestamp with time zone,
    next_attempt_at timestamp with time zone,
    lease_token uuid,
    actor character varying(60) NOT NULL,
    request_id character varying(64) NOT NULL,
    traceparent character varying(55) DEFAULT ''::character varying NOT NULL,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    is_open boolean GENERATED ALWAYS AS ((((state)::text = ANY ((ARRAY['in_flight'::character varying, 'needs_action'::character varying, 'unknown'::character varying])::text[])) OR (((kind)::text = ANY ((ARRAY['authorize'::character varying, 'capture'::character varying, 'void'::character varying])::text[])) AND ((state)::text = 'pending'::text)))) STORED,
    payment_id uuid NOT NULL,
    resends_id uuid,
    CONSTRAINT an_operation_has_an_end_when_it_ended CHECK ((((ended_at IS NOT NULL) AND ((state)::text = ANY ((ARRAY['succeeded'::character varying, 'declined'::character varying, 'failed'::character varying])::text[]))) OR ((NOT ((state)::text = ANY ((ARRAY['succeeded'::character varying, 'declined'::character varying, 'failed'::character varying])::text[]))) AND (ended_at IS NULL)))),
    CONSTRAINT an_operation_is_of_something CHECK ((amount > 0)),
    CONSTRAINT an_operation_says_what_it_is_for CHECK (((((purpose)::text = ANY ((ARRAY['payment'::character varying, 'outside'::character varying])::text[])) AND (refund_uuid IS NULL) AND (share_uuid IS NULL)) OR (((purpose)::text = 'reimbursement'::text) AND (refund_uuid IS NULL) AND (share_uuid IS NOT NULL)) OR (((purpose)::text = 'refund_part'::text) AND (refund_uuid IS NOT NULL) AND (share_uuid IS NULL)))),
    CONSTRAINT only_a_refund_is_sent_again CHECK (((resends_id IS NULL) OR ((kind)::text = 'refund'::text))),
    CONSTRAINT payments_operation_attempts_check CHECK ((attempts >= 0))
);

CREATE TABLE public.payments_payment (
    id uuid NOT NULL,
    kind character varying(5) NOT NULL,
    subject uuid NOT NULL,
    checkout_uuid uuid NOT NULL,
    amount bigint NOT NULL,
    currency character varying(3) NOT NULL,
    status character varying(12) NOT NULL,
    decline_reason character varying(40) NOT NULL,
    provider_reference character varying(255) NOT NULL,
    provider_account character varying(64) NOT NULL,
    card_token character varying(255) NOT NULL,
    return_url character varying(1000) NOT NULL,
    card_brand character varying(20) NOT NULL,
    card_last4 character varying(4) NOT NULL,
    card_fingerprint character varying(64) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    synced_at timestamp with time zone,
    abandoned_at timestamp with time zone,
    is_live boolean GENERATED ALWAYS AS (((abandoned_at IS NULL) AND ((status)::text = ANY ((ARRAY['authorizing'::character varying, 'authorized'::character varying, 'captured'::character varying])::text[])))) STORED,
    merchant_id uuid NOT NULL,
    CONSTRAINT a_payment_is_of_something CHECK ((amount > 0)),
    CONSTRAINT an_orders_payment_is_of_its_checkout CHECK (((((kind)::text = 'order'::text) AND (subject = checkout_uuid)) OR (((kind)::text = 'share'::text) AND (NOT (subject = checkout_uuid)))))
);

CREATE TABLE public.payments_posting (
    id uuid NOT NULL,
    transaction uuid NOT NULL,
    checkout_uuid uuid NOT NULL,
    account character varying(10) NOT NULL,
    amount bigint NOT NULL,
    currency character varying(3) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    merchant_id uuid NOT NULL,
    CONSTRAINT a_posting_moves_something CHECK ((NOT (amount = 0)))
);

CREATE TABLE public.payments_reconciled (
    id smallint NOT NULL,
    until timestamp with time zone NOT NULL,
    CONSTRAINT payments_reconciled_id_check CHECK ((id >= 0)),
    CONSTRAINT the_books_are_read_until_one_moment CHECK ((id = 1))
);

CREATE TABLE public.payments_switch (
    id uuid NOT NULL,
    is_stopped boolean NOT NULL,
    reason character varying(200) NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    merchant_id uuid
);

CREATE TABLE public.portal_apiclient (
    client_id character varying(255) NOT NULL,
    redirect_uris text NOT NULL,
    post_logout_redirect_uris text NOT NULL,
    client_type character varying(32) NOT NULL,
    authorization_grant_type character varying(44) NOT NULL,
    client_secret character varying(255) NOT NULL,
    hash_client_secret boolean NOT NULL,
    name character varying(255) NOT NULL,
    skip_authorization boolean NOT NULL,
    created timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    algorithm character varying(5) NOT NULL,
    allowed_origins text NOT NULL,
    registration_source character varying(32) NOT NULL,
    cimd_expires_at timestamp with time zone,
    id uuid NOT NULL,
    scopes text NOT NULL,
    previous_secret character varying(255) NOT NULL,
    rotated_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    holder_id uuid,
    merchant_id uuid NOT NULL,
    previous_holder_id uuid,
    user_id uuid
);

CREATE TABLE public.portal_auditentry (
    id uuid NOT NULL,
    action character varying(60) NOT NULL,
    facts jsonb NOT NULL,
    is_operators boolean DEFAULT false NOT NULL,
    address inet,
    request_id character varying(64) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    client_id uuid,
    merchant_id uuid NOT NULL,
    user_id uuid
);

CREATE TABLE public.portal_canary (
    id bigint NOT NULL,
    sealed text NOT NULL,
    digest character varying(64) NOT NULL,
    environment character varying(10) NOT NULL,
    planted_at timestamp with time zone NOT NULL
);

ALTER TABLE public.portal_canary ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.portal_canary_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.portal_checkoutnote (
    id uuid NOT NULL,
    checkout_uuid uuid NOT NULL,
    text character varying(1000) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    merchant_id uuid NOT NULL,
    user_id uuid NOT NULL
);

CREATE TABLE public.portal_deliveryhour (
    id uuid NOT NULL,
    hour timestamp with time zone NOT NULL,
    delivered_count integer NOT NULL,
    failed_count integer NOT NULL,
    durations integer[] NOT NULL,
    merchant_id uuid NOT NULL,
    CONSTRAINT portal_deliveryhour_delivered_count_check CHECK ((delivered_count >= 0)),
    CONSTRAINT portal_deliveryhour_failed_count_check CHECK ((failed_count >= 0))
);

CREATE TABLE public.portal_invitation (
    id uuid NOT NULL,
    email character varying(254) NOT NULL,
    role character varying(10) NOT NULL,
    token_digest character varying(64) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    invited_by_id uuid NOT NULL,
    merchant_id uuid NOT NULL
);

CREATE TABLE public.portal_lastwrite (
    whose uuid NOT NULL,
    "position" bigint NOT NULL
);

CREATE TABLE public.portal_loginattempt (
    id uuid NOT NULL,
    kind character varying(20) NOT NULL,
    account_digest character varying(64) NOT NULL,
    address_digest character varying(64) NOT NULL,
    site_digest character varying(64) DEFAULT ''::character varying NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.portal_membership (
    id uuid NOT NULL,
    role character varying(10) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    merchant_id uuid NOT NULL,
    user_id uuid NOT NULL
);

CREATE TABLE public.portal_outboundemail (
    id uuid NOT NULL,
    kind character varying(40) NOT NULL,
    key character varying(80) NOT NULL,
    facts jsonb NOT NULL,
    text text,
    created_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone,
    next_try_at timestamp with time zone,
    tries smallint NOT NULL,
    sent_at timestamp with time zone,
    dropped_at timestamp with time zone,
    merchant_id uuid,
    CONSTRAINT portal_outboundemail_tries_check CHECK ((tries >= 0))
);

CREATE TABLE public.portal_paymenthour (
    id uuid NOT NULL,
    hour timestamp with time zone NOT NULL,
    currency character varying(3) NOT NULL,
    captured_count integer NOT NULL,
    captured_amount bigint NOT NULL,
    cancelled_count integer NOT NULL,
    lapsed_count integer NOT NULL,
    lapsed_amount bigint NOT NULL,
    refunded_count integer NOT NULL,
    refunded_amount bigint NOT NULL,
    hold_times integer[] NOT NULL,
    merchant_id uuid NOT NULL,
    CONSTRAINT portal_paymenthour_cancelled_count_check CHECK ((cancelled_count >= 0)),
    CONSTRAINT portal_paymenthour_captured_count_check CHECK ((captured_count >= 0)),
    CONSTRAINT portal_paymenthour_lapsed_count_check CHECK ((lapsed_count >= 0)),
    CONSTRAINT portal_paymenthour_refunded_count_check CHECK ((refunded_count >= 0))
);

CREATE TABLE public.portal_previouspassword (
    id uuid NOT NULL,
    encoded character varying(128) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    user_id uuid NOT NULL
);

CREATE TABLE public.portal_trial (
    id uuid NOT NULL,
    "case" character varying(20) NOT NULL,
    checkout_uuid uuid,
    created_at timestamp with time zone NOT NULL,
    acted_at timestamp with time zone,
    ended_at timestamp with time zone,
    next_look_at timestamp with time zone,
    has_passed boolean,
    reason character varying(400) NOT NULL,
    evidence jsonb NOT NULL,
    merchant_id uuid NOT NULL,
    user_id uuid NOT NULL,
    CONSTRAINT a_trial_that_has_ended_has_an_outcome CHECK ((((ended_at IS NULL) AND (has_passed IS NULL) AND (next_look_at IS NOT NULL)) OR ((ended_at IS NOT NULL) AND (has_passed IS NOT NULL) AND (next_look_at IS NULL))))
);

CREATE TABLE public.portal_user (
    password character varying(128) NOT NULL,
    last_login timestamp with time zone,
    is_superuser boolean NOT NULL,
    id uuid NOT NULL,
    email character varying(254) NOT NULL,
    is_staff boolean NOT NULL,
    is_active boolean NOT NULL,
    date_joined timestamp with time zone NOT NULL,
    disuse_warned_at timestamp with time zone,
    disabled_for_disuse_at timestamp with time zone
);

CREATE TABLE public.portal_user_groups (
    id bigint NOT NULL,
    user_id uuid NOT NULL,
    group_id integer NOT NULL
);

ALTER TABLE public.portal_user_groups ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.portal_user_groups_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.portal_user_user_permissions (
    id bigint NOT NULL,
    user_id uuid NOT NULL,
    permission_id integer NOT NULL
);

ALTER TABLE public.portal_user_user_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.portal_user_user_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.usersessions_usersession (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    ip inet NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    session_key character varying(40) NOT NULL,
    user_agent character varying(200) NOT NULL,
    data jsonb NOT NULL,
    user_id uuid NOT NULL
);

ALTER TABLE public.usersessions_usersession ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.usersessions_usersession_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.webhooks_attempt (
    id uuid NOT NULL,
    merchant_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    number integer NOT NULL,
    event_type character varying(40) NOT NULL,
    actor character varying(60) DEFAULT ''::character varying NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    is_delivered boolean,
    http_status smallint,
    error_message character varying(255),
    duration_ms integer,
    response_excerpt text NOT NULL,
    CONSTRAINT an_attempt_lies_with_its_delivery CHECK ((SUBSTRING(uuid_send(id) FROM 1 FOR 6) = SUBSTRING(uuid_send(delivery_id) FROM 1 FOR 6))),
    CONSTRAINT webhooks_attempt_duration_ms_check CHECK ((duration_ms >= 0)),
    CONSTRAINT webhooks_attempt_http_status_check CHECK ((http_status >= 0)),
    CONSTRAINT webhooks_attempt_number_check CHECK ((number >= 0))
)
PARTITION BY RANGE (id);

CREATE TABLE public.webhooks_attempt_default (
    id uuid CONSTRAINT webhooks_attempt_id_not_null NOT NULL,
    merchant_id uuid CONSTRAINT webhooks_attempt_merchant_id_not_null NOT NULL,
    delivery_id uuid CONSTRAINT webhooks_attempt_delivery_id_not_null NOT NULL,
    number integer CONSTRAINT webhooks_attempt_number_not_null NOT NULL,
    event_type character varying(40) CONSTRAINT webhooks_attempt_event_type_not_null NOT NULL,
    actor character varying(60) DEFAULT ''::character varying CONSTRAINT webhooks_attempt_actor_not_null NOT NULL,
    started_at timestamp with time zone CONSTRAINT webhooks_attempt_started_at_not_null NOT NULL,
    ended_at timestamp with time zone,
    is_delivered boolean,
    http_status smallint,
    error_message character varying(255),
    duration_ms integer,
    response_excerpt text CONSTRAINT webhooks_attempt_response_excerpt_not_null NOT NULL,
    CONSTRAINT an_attempt_lies_with_its_delivery CHECK ((SUBSTRING(uuid_send(id) FROM 1 FOR 6) = SUBSTRING(uuid_send(delivery_id) FROM 1 FOR 6))),
    CONSTRAINT webhooks_attempt_duration_ms_check CHECK ((duration_ms >= 0)),
    CONSTRAINT webhooks_attempt_http_status_check CHECK ((http_status >= 0)),
    CONSTRAINT webhooks_attempt_number_check CHECK ((number >= 0))
)
WITH (fillfactor='60');

CREATE TABLE public.webhooks_delivery (
    id uuid NOT NULL,
    merchant_id uuid NOT NULL,
    event_id uuid NOT NULL,
    subscription_id uuid NOT NULL,
    event_type character varying(40) NOT NULL,
    status character varying(10) NOT NULL,
    is_urgent boolean NOT NULL,
    attempt_count integer NOT NULL,
    resent_count integer NOT NULL,
    resent_by character varying(60) NOT NULL,
    returns_at timestamp with time zone,
    valid_until timestamp with time zone,
    superseded_at timestamp with time zone,
    next_attempt_at timestamp with time zone,
    lease_until timestamp with time zone,
    lease_token uuid,
    ended_at timestamp with time zone,
    closed_at timestamp with time zone,
    CONSTRAINT a_delivery_lies_with_its_event CHECK ((SUBSTRING(uuid_send(id) FROM 1 FOR 6) = SUBSTRING(uuid_send(event_id) FROM 1 FOR 6))),
    CONSTRAINT a_pending_delivery_has_a_next_attempt CHECK (((((status)::text = 'pending'::text) AND (ended_at IS NULL) AND ((next_attempt_at IS NOT NULL) OR ((event_type)::text = 'marketing.opted_in'::text))) OR (((status)::text <> 'pending'::text) AND (ended_at IS NOT NULL) AND (next_attempt_at IS NULL)))),
    CONSTRAINT webhooks_delivery_attempt_count_check CHECK ((attempt_count >= 0)),
    CONSTRAINT webhooks_delivery_resent_count_check CHECK ((resent_count >= 0))
)
PARTITION BY LIST (status);

CREATE TABLE public.webhooks_delivery_ended (
    id uuid NOT NULL,
    merchant_id uuid CONSTRAINT webhooks_delivery_merchant_id_not_null NOT NULL,
    event_id uuid CONSTRAINT webhooks_delivery_event_id_not_null NOT NULL,
    subscription_id uuid CONSTRAINT webhooks_delivery_subscription_id_not_null NOT NULL,
    event_type character varying(40) CONSTRAINT webhooks_delivery_event_type_not_null NOT NULL,
    status character varying(10) CONSTRAINT webhooks_delivery_status_not_null NOT NULL,
    is_urgent boolean CONSTRAINT webhooks_delivery_is_urgent_not_null NOT NULL,
    attempt_count integer CONSTRAINT webhooks_delivery_attempt_count_not_null NOT NULL,
    resent_count integer CONSTRAINT webhooks_delivery_resent_count_not_null NOT NULL,
    resent_by character varying(60) CONSTRAINT webhooks_delivery_resent_by_not_null NOT NULL,
    returns_at timestamp with time zone,
    valid_until timestamp with time zone,
    superseded_at timestamp with time zone,
    next_attempt_at timestamp with time zone,
    lease_until timestamp with time zone,
    lease_token uuid,
    ended_at timestamp with time zone,
    closed_at timestamp with time zone,
    CONSTRAINT a_delivery_lies_with_its_event CHECK ((SUBSTRING(uuid_send(id) FROM 1 FOR 6) = SUBSTRING(uuid_send(event_id) FROM 1 FOR 6))),
    CONSTRAINT a_pending_delivery_has_a_next_attempt CHECK (((((status)::text = 'pending'::text) AND (ended_at IS NULL) AND ((next_attempt_at IS NOT NULL) OR ((event_type)::text = 'marketing.opted_in'::text))) OR (((status)::text <> 'pending'::text) AND (ended_at IS NOT NULL) AND (next_attempt_at IS NULL)))),
    CONSTRAINT webhooks_delivery_attempt_count_check CHECK ((attempt_count >= 0)),
    CONSTRAINT webhooks_delivery_resent_count_check CHECK ((resent_count >= 0))
)
PARTITION BY RANGE (id);

CREATE TABLE public.webhooks_delivery_ended_default (
    id uuid CONSTRAINT webhooks_delivery_ended_id_not_null NOT NULL,
    merchant_id uuid CONSTRAINT webhooks_delivery_merchant_id_not_null NOT NULL,
    event_id uuid CONSTRAINT webhooks_delivery_event_id_not_null NOT NULL,
    subscription_id uuid CONSTRAINT webhooks_delivery_subscription_id_not_null NOT NULL,
    event_type character varying(40) CONSTRAINT webhooks_delivery_event_type_not_null NOT NULL,
    status character varying(10) CONSTRAINT webhooks_delivery_status_not_null NOT NULL,
    is_urgent boolean CONSTRAINT webhooks_delivery_is_urgent_not_null NOT NULL,
    attempt_count integer CONSTRAINT webhooks_delivery_attempt_count_not_null NOT NULL,
    resent_count integer CONSTRAINT webhooks_delivery_resent_count_not_null NOT NULL,
    resent_by character varying(60) CONSTRAINT webhooks_delivery_resent_by_not_null NOT NULL,
    returns_at timestamp with time zone,
    valid_until timestamp with time zone,
    superseded_at timestamp with time zone,
    next_attempt_at timestamp with time zone,
    lease_until timestamp with time zone,
    lease_token uuid,
    ended_at timestamp with time zone,
    closed_at timestamp with time zone,
    CONSTRAINT a_delivery_lies_with_its_event CHECK ((SUBSTRING(uuid_send(id) FROM 1 FOR 6) = SUBSTRING(uuid_send(event_id) FROM 1 FOR 6))),
    CONSTRAINT a_pending_delivery_has_a_next_attempt CHECK (((((status)::text = 'pending'::text) AND (ended_at IS NULL) AND ((next_attempt_at IS NOT NULL) OR ((event_type)::text = 'marketing.opted_in'::text))) OR (((status)::text <> 'pending'::text) AND (ended_at IS NOT NULL) AND (next_attempt_at IS NULL)))),
    CONSTRAINT webhooks_delivery_attempt_count_check CHECK ((attempt_count >= 0)),
    CONSTRAINT webhooks_delivery_resent_count_check CHECK ((resent_count >= 0))
);

CREATE TABLE public.webhooks_delivery_pending (
    id uuid NOT NULL,
    merchant_id uuid CONSTRAINT webhooks_delivery_merchant_id_not_null NOT NULL,
    event_id uuid CONSTRAINT webhooks_delivery_event_id_not_null NOT NULL,
    subscription_id uuid CONSTRAINT webhooks_delivery_subscription_id_not_null NOT NULL,
    event_type character varying(40) CONSTRAINT webhooks_delivery_event_type_not_null NOT NULL,
    status character varying(10) CONSTRAINT webhooks_delivery_status_not_null NOT NULL,
    is_urgent boolean CONSTRAINT webhooks_delivery_is_urgent_not_null NOT NULL,
    attempt_count integer CONSTRAINT webhooks_delivery_attempt_count_not_null NOT NULL,
    resent_count integer CONSTRAINT webhooks_delivery_resent_count_not_null NOT NULL,
    resent_by character varying(60) CONSTRAINT webhooks_delivery_resent_by_not_null NOT NULL,
    returns_at timestamp with time zone,
    valid_until timestamp with time zone,
    superseded_at timestamp with time zone,
    next_attempt_at timestamp with time zone,
    lease_until timestamp with time zone,
    lease_token uuid,
    ended_at timestamp with time zone,
    closed_at timestamp with time zone,
    CONSTRAINT a_delivery_lies_with_its_event CHECK ((SUBSTRING(uuid_send(id) FROM 1 FOR 6) = SUBSTRING(uuid_send(event_id) FROM 1 FOR 6))),
    CONSTRAINT a_pending_delivery_has_a_next_attempt CHECK (((((status)::text = 'pending'::text) AND (ended_at IS NULL) AND ((next_attempt_at IS NOT NULL) OR ((event_type)::text = 'marketing.opted_in'::text))) OR (((status)::text <> 'pending'::text) AND (ended_at IS NOT NULL) AND (next_attempt_at IS NULL)))),
    CONSTRAINT webhooks_delivery_attempt_count_check CHECK ((attempt_count >= 0)),
    CONSTRAINT webhooks_delivery_resent_count_check CHECK ((resent_count >= 0))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.1');

CREATE TABLE public.webhooks_endpoint (
    subscription_id uuid NOT NULL,
    paced_until timestamp with time zone,
    hung_in_a_row integer DEFAULT 0 NOT NULL,
    last_success_at timestamp with time zone,
    last_failure_at timestamp with time zone,
    last_error character varying(255) DEFAULT ''::character varying NOT NULL,
    failing_since timestamp with time zone,
    CONSTRAINT webhooks_endpoint_hung_in_a_row_check CHECK ((hung_in_a_row >= 0))
);

CREATE TABLE public.webhooks_event (
    id uuid NOT NULL,
    merchant_id uuid NOT NULL,
    type character varying(40) NOT NULL,
    checkout_uuid uuid,
    body bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    valid_until timestamp with time zone,
    superseded_at timestamp with time zone,
    body_deleted_at timestamp with time zone,
    request_id character varying(64) NOT NULL,
    traceparent character varying(55) DEFAULT ''::character varying NOT NULL,
    written_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
PARTITION BY RANGE (id);

CREATE TABLE public.webhooks_event_default (
    id uuid CONSTRAINT webhooks_event_id_not_null NOT NULL,
    merchant_id uuid CONSTRAINT webhooks_event_merchant_id_not_null NOT NULL,
    type character varying(40) CONSTRAINT webhooks_event_type_not_null NOT NULL,
    checkout_uuid uuid,
    body bytea CONSTRAINT webhooks_event_body_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT webhooks_event_created_at_not_null NOT NULL,
    valid_until timestamp with time zone,
    superseded_at timestamp with time zone,
    body_deleted_at timestamp with time zone,
    request_id character varying(64) CONSTRAINT webhooks_event_request_id_not_null NOT NULL,
    traceparent character varying(55) DEFAULT ''::character varying CONSTRAINT webhooks_event_traceparent_not_null NOT NULL,
    written_at timestamp with time zone DEFAULT clock_timestamp() CONSTRAINT webhooks_event_written_at_not_null NOT NULL
);

CREATE TABLE public.webhooks_signingsecret (
    id uuid NOT NULL,
    secret text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    subscription_id uuid NOT NULL
);

CREATE TABLE public.webhooks_subscription (
    id uuid NOT NULL,
    url character varying(2048) NOT NULL,
    event_types character varying(40)[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    is_approved boolean DEFAULT false NOT NULL,
    has_deliveries boolean NOT NULL,
    merchant_id uuid NOT NULL
);

ALTER TABLE ONLY public.checkout_apicall ATTACH PARTITION public.checkout_apicall_default DEFAULT;

ALTER TABLE ONLY public.webhooks_attempt ATTACH PARTITION public.webhooks_attempt_default DEFAULT;

ALTER TABLE ONLY public.webhooks_delivery ATTACH PARTITION public.webhooks_delivery_ended FOR VALUES IN ('delivered', 'parked', 'superseded');

ALTER TABLE ONLY public.webhooks_delivery_ended ATTACH PARTITION public.webhooks_delivery_ended_default DEFAULT;

ALTER TABLE ONLY public.webhooks_delivery ATTACH PARTITION public.webhooks_delivery_pending FOR VALUES IN ('pending');

ALTER TABLE ONLY public.webhooks_event ATTACH PARTITION public.webhooks_event_default DEFAULT;

ALTER TABLE ONLY public.payments_formeraccount
    ADD CONSTRAINT a_former_account_is_kept_once UNIQUE (merchant_id, provider_account);

ALTER TABLE ONLY public.payments_balanceentry
    ADD CONSTRAINT a_line_of_the_balance_is_kept_once UNIQUE (account, reference);

ALTER TABLE ONLY public.hosted_page_cspreport
    ADD CONSTRAINT a_violation_has_one_row UNIQUE (page, directive, blocked);

ALTER TABLE ONLY public.bank_banknotification
    ADD CONSTRAINT bank_banknotification_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.bank_brokenkey
    ADD CONSTRAINT bank_brokenkey_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.bank_call
    ADD CONSTRAINT bank_call_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.bank_cardsession
    ADD CONSTRAINT bank_cardsession_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.bank_cardtoken
    ADD CONSTRAINT bank_cardtoken_digest_key UNIQUE (digest);

ALTER TABLE ONLY public.bank_cardtoken
    ADD CONSTRAINT bank_cardtoken_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.bank_charge
    ADD CONSTRAINT bank_charge_payment_key UNIQUE (payment);

ALTER TABLE ONLY public.bank_charge
    ADD CONSTRAINT bank_charge_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.bank_dispute
    ADD CONSTRAINT bank_dispute_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.bank_fault
    ADD CONSTRAINT bank_fault_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_apicall
    ADD CONSTRAINT checkout_apicall_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_apicall_default
    ADD CONSTRAINT checkout_apicall_default_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_bill
    ADD CONSTRAINT checkout_bill_pkey PRIMARY KEY (checkout_id);

ALTER TABLE ONLY public.checkout_change
    ADD CONSTRAINT checkout_change_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_checkout
    ADD CONSTRAINT checkout_checkout_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_customer
    ADD CONSTRAINT checkout_customer_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_grouplink
    ADD CONSTRAINT checkout_grouplink_pkey PRIMARY KEY (checkout_id);

ALTER TABLE ONLY public.checkout_grouplink
    ADD CONSTRAINT checkout_grouplink_token_digest_key UNIQUE (token_digest);

ALTER TABLE ONLY public.checkout_idempotencykey
    ADD CONSTRAINT checkout_idempotencykey_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_leadnotification
    ADD CONSTRAINT checkout_leadnotification_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_merchantcustomer
    ADD CONSTRAINT checkout_merchantcustomer_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_paymentrequest
    ADD CONSTRAINT checkout_paymentrequest_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_paymentrequest
    ADD CONSTRAINT checkout_paymentrequest_token_digest_key UNIQUE (token_digest);

ALTER TABLE ONLY public.checkout_prefill
    ADD CONSTRAINT checkout_prefill_pkey PRIMARY KEY (checkout_id);

ALTER TABLE ONLY public.checkout_proofrun
    ADD CONSTRAINT checkout_proofrun_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_refund
    ADD CONSTRAINT checkout_refund_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_replacedlink
    ADD CONSTRAINT checkout_replacedlink_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.checkout_replacedlink
    ADD CONSTRAINT checkout_replacedlink_token_digest_key UNIQUE (token_digest);

ALTER TABLE ONLY public.hosted_page_cardtry
    ADD CONSTRAINT hosted_page_cardtry_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.hosted_page_cspreport
    ADD CONSTRAINT hosted_page_cspreport_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.hosted_page_knownbrowser
    ADD CONSTRAINT hosted_page_knownbrowser_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.hosted_page_knownbrowser
    ADD CONSTRAINT hosted_page_knownbrowser_token_digest_key UNIQUE (token_digest);

ALTER TABLE ONLY public.hosted_page_optin
    ADD CONSTRAINT hosted_page_optin_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.hosted_page_optintext
    ADD CONSTRAINT hosted_page_optintext_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.hosted_page_payersignin
    ADD CONSTRAINT hosted_page_payersignin_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.hosted_page_sharetake
    ADD CONSTRAINT hosted_page_sharetake_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.hosted_page_signincode
    ADD CONSTRAINT hosted_page_signincode_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.hosted_page_smsday
    ADD CONSTRAINT hosted_page_smsday_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.hosted_page_smsmessage
    ADD CONSTRAINT hosted_page_smsmessage_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.hosted_page_smsstop
    ADD CONSTRAINT hosted_page_smsstop_pkey PRIMARY KEY (number);

ALTER TABLE ONLY public.payments_balanceentry
    ADD CONSTRAINT payments_balanceentry_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_booking
    ADD CONSTRAINT payments_booking_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_booking
    ADD CONSTRAINT payments_booking_reverses_id_key UNIQUE (reverses_id);

ALTER TABLE ONLY public.payments_databasemark
    ADD CONSTRAINT payments_databasemark_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_discrepancy
    ADD CONSTRAINT payments_discrepancy_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_dispute
    ADD CONSTRAINT payments_dispute_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_formeraccount
    ADD CONSTRAINT payments_formeraccount_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_inquiry
    ADD CONSTRAINT payments_inquiry_pkey PRIMARY KEY (payment_id);

ALTER TABLE ONLY public.payments_lastbackup
    ADD CONSTRAINT payments_lastbackup_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_ledgerclosing
    ADD CONSTRAINT payments_ledgerclosing_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_ledgersum
    ADD CONSTRAINT payments_ledgersum_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_logo
    ADD CONSTRAINT payments_logo_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY public.payments_merchant
    ADD CONSTRAINT payments_merchant_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_movement
    ADD CONSTRAINT payments_movement_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_operation
    ADD CONSTRAINT payments_operation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_payment
    ADD CONSTRAINT payments_payment_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_posting
    ADD CONSTRAINT payments_posting_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_reconciled
    ADD CONSTRAINT payments_reconciled_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.payments_switch
    ADD CONSTRAINT payments_switch_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_apiclient
    ADD CONSTRAINT portal_apiclient_client_id_key UNIQUE (client_id);

ALTER TABLE ONLY public.portal_apiclient
    ADD CONSTRAINT portal_apiclient_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_auditentry
    ADD CONSTRAINT portal_auditentry_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_canary
    ADD CONSTRAINT portal_canary_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_checkoutnote
    ADD CONSTRAINT portal_checkoutnote_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_deliveryhour
    ADD CONSTRAINT portal_deliveryhour_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_invitation
    ADD CONSTRAINT portal_invitation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_invitation
    ADD CONSTRAINT portal_invitation_token_digest_key UNIQUE (token_digest);

ALTER TABLE ONLY public.portal_lastwrite
    ADD CONSTRAINT portal_lastwrite_pkey PRIMARY KEY (whose);

ALTER TABLE ONLY public.portal_loginattempt
    ADD CONSTRAINT portal_loginattempt_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_membership
    ADD CONSTRAINT portal_membership_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_outboundemail
    ADD CONSTRAINT portal_outboundemail_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_paymenthour
    ADD CONSTRAINT portal_paymenthour_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_previouspassword
    ADD CONSTRAINT portal_previouspassword_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_trial
    ADD CONSTRAINT portal_trial_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_user
    ADD CONSTRAINT portal_user_email_key UNIQUE (email);

ALTER TABLE ONLY public.portal_user_groups
    ADD CONSTRAINT portal_user_groups_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_user_groups
    ADD CONSTRAINT portal_user_groups_user_id_group_id_bad90d85_uniq UNIQUE (user_id, group_id);

ALTER TABLE ONLY public.portal_user
    ADD CONSTRAINT portal_user_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.portal_user_user_permissions
    ADD CONSTRAINT portal_user_user_permiss_user_id_permission_id_55ccefbe_uniq UNIQUE (user_id, permission_id);

ALTER TABLE ONLY public.portal_user_user_permissions
    ADD CONSTRAINT portal_user_user_permissions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.usersessions_usersession
    ADD CONSTRAINT usersessions_usersession_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.usersessions_usersession
    ADD CONSTRAINT usersessions_usersession_session_key_key UNIQUE (session_key);

ALTER TABLE ONLY public.webhooks_attempt
    ADD CONSTRAINT webhooks_attempt_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhooks_attempt_default
    ADD CONSTRAINT webhooks_attempt_default_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhooks_delivery_ended
    ADD CONSTRAINT webhooks_delivery_ended_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhooks_delivery_ended_default
    ADD CONSTRAINT webhooks_delivery_ended_default_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhooks_delivery_pending
    ADD CONSTRAINT webhooks_delivery_pending_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhooks_endpoint
    ADD CONSTRAINT webhooks_endpoint_pkey PRIMARY KEY (subscription_id);

ALTER TABLE ONLY public.webhooks_event
    ADD CONSTRAINT webhooks_event_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhooks_event_default
    ADD CONSTRAINT webhooks_event_default_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhooks_signingsecret
    ADD CONSTRAINT webhooks_signingsecret_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhooks_subscription
    ADD CONSTRAINT webhooks_subscription_pkey PRIMARY KEY (id);

CREATE UNIQUE INDEX a_card_is_charged_once ON public.payments_movement USING btree (payment_id) WHERE ((kind)::text = 'captured'::text);

CREATE UNIQUE INDEX a_day_or_month_is_summed_once ON public.payments_ledgersum USING btree (merchant_id, account, currency, begin, "end") INCLUDE (amount);

CREATE UNIQUE INDEX a_days_texts_are_counted_once ON public.hosted_page_smsday USING btree (day, merchant_id) NULLS NOT DISTINCT;

CREATE UNIQUE INDEX a_dispute_is_recorded_once ON public.payments_dispute USING btree (payment_id, reference);

CREATE UNIQUE INDEX a_fact_is_recorded_once ON public.payments_movement USING btree (payment_id, kind, reference);

CREATE UNIQUE INDEX a_lead_is_notified_once ON public.checkout_leadnotification USING btree (checkout_id, kind, share_uuid) NULLS NOT DISTINCT;

CREATE UNIQUE INDEX a_notice_is_sent_once ON public.portal_outboundemail USING btree (merchant_id, kind, key);

CREATE UNIQUE INDEX a_payment_has_its_own_provider_reference ON public.payments_payment USING btree (provider_reference) WHERE (NOT ((provider_reference)::text = ''::text));

CREATE UNIQUE INDEX a_place_on_a_bill_is_taken_once ON public.checkout_paymentrequest USING btree (checkout_id, "position") WHERE (replaced_at IS NULL);

CREATE UNIQUE INDEX a_refund_ref_is_used_once_per_merchant ON public.checkout_refund USING btree (merchant_id, merchant_refund_ref);

CREATE UNIQUE INDEX a_transaction_posts_once_per_account ON public.payments_posting USING btree (transaction, account);

CREATE UNIQUE INDEX an_event_goes_once_to_a_subscription ON public.webhooks_delivery_pending USING btree (event_id, subscription_id);

CREATE UNIQUE INDEX an_event_went_once_to_a_subscription ON public.webhooks_delivery_ended_default USING btree (event_id, subscription_id);

CREATE UNIQUE INDEX an_hour_of_deliveries_is_counted_once ON public.portal_deliveryhour USING btree (merchant_id, hour);

CREATE UNIQUE INDEX an_hour_of_payments_is_counted_once ON public.portal_paymenthour USING btree (merchant_id, hour, currency);

CREATE UNIQUE INDEX an_idempotency_key_is_used_once_per_merchant ON public.checkout_idempotencykey USING btree (merchant_id, key);

CREATE UNIQUE INDEX an_opt_in_text_has_one_wording ON public.hosted_page_optintext USING btree (merchant_id, version);

CREATE INDEX apicall_listed ON ONLY public.checkout_apicall USING btree (merchant_id, created_at, id);

CREATE INDEX apicall_of_checkout ON ONLY public.checkout_apicall USING btree (merchant_id, checkout_uuid, created_at);

CREATE INDEX apicall_request ON ONLY public.checkout_apicall USING btree (merchant_id, request_id);

CREATE INDEX attempt_listed ON ONLY public.webhooks_attempt USING btree (merchant_id, started_at, id);

CREATE INDEX attempt_of_hour ON ONLY public.webhooks_attempt USING brin (started_at) WITH (autosummarize='on', pages_per_range='32');

CREATE INDEX attempt_refused ON ONLY public.webhooks_attempt USING btree (merchant_id, started_at DESC, id DESC) WHERE (error_message IS NOT NULL);

CREATE INDEX attempt_seldom ON ONLY public.webhooks_attempt USING btree (merchant_id, event_type, started_at DESC, id DESC) WHERE ((event_type)::text <> 'checkout.authorized'::text);

CREATE UNIQUE INDEX attempts_of_a_delivery_are_numbered ON public.webhooks_attempt_default USING btree (delivery_id, number);

CREATE INDEX balance_in_payout ON public.payments_balanceentry USING btree (merchant_id, payout) WHERE (NOT ((payout)::text = ''::text));

CREATE INDEX balance_of_operation ON public.payments_balanceentry USING btree (operation) WHERE (operation IS NOT NULL);

CREATE INDEX balance_payouts ON public.payments_balanceentry USING btree (merchant_id, made_at DESC, id DESC) WHERE ((kind)::text = 'payout'::text);

CREATE INDEX bank_banknotification_call_id_891dc74f ON public.bank_banknotification USING btree (call_id);

CREATE INDEX bank_banknotification_dispute_id_a0cbd443 ON public.bank_banknotification USING btree (dispute_id);

CREATE INDEX bank_call_charge_id_88365c58 ON public.bank_call USING btree (charge_id);

CREATE INDEX bank_call_returns ON public.bank_call USING btree (returns_at) WHERE (returns_at IS NOT NULL);

CREATE INDEX bank_call_settles ON public.bank_call USING btree (settles_at) WHERE ((verdict)::text = 'pending'::text);

CREATE INDEX bank_cardtoken_digest_c66c3eae_like ON public.bank_cardtoken USING btree (digest varchar_pattern_ops);

CREATE INDEX bank_dispute_charge_id_c8dac7c3 ON public.bank_dispute USING btree (charge_id);

CREATE INDEX bank_dispute_opens ON public.bank_dispute USING btree (opens_at) WHERE (NOT is_reported);

CREATE INDEX bank_notification_due ON public.bank_banknotification USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX card_try_address ON public.hosted_page_cardtry USING btree (address_digest, created_at) WHERE is_counted;

CREATE INDEX card_try_of_number ON public.hosted_page_cardtry USING btree (phone_digest, created_at);

CREATE INDEX card_try_of_subject ON public.hosted_page_cardtry USING btree (subject, created_at);

CREATE INDEX card_try_phone ON public.hosted_page_cardtry USING btree (phone_digest, created_at) WHERE is_counted;

CREATE INDEX card_try_site ON public.hosted_page_cardtry USING btree (site_digest, created_at) WHERE (is_counted AND (NOT ((site_digest)::text = ''::text)));

CREATE INDEX checkout_apicall_default_merchant_id_checkout_uuid_created__idx ON public.checkout_apicall_default USING btree (merchant_id, checkout_uuid, created_at);

CREATE INDEX checkout_apicall_default_merchant_id_created_at_id_idx ON public.checkout_apicall_default USING btree (merchant_id, created_at, id);

CREATE INDEX checkout_apicall_default_merchant_id_request_id_idx ON public.checkout_apicall_default USING btree (merchant_id, request_id);

CREATE INDEX checkout_change_checkout_id_63cc1385 ON public.checkout_change USING btree (checkout_id);

CREATE INDEX checkout_changed ON public.checkout_checkout USING btree (merchant_id, updated_at);

CREATE INDEX checkout_grouplink_token_digest_ff32df0c_like ON public.checkout_grouplink USING btree (token_digest varchar_pattern_ops);

CREATE INDEX checkout_holds ON public.checkout_checkout USING btree (capture_before) WHERE ((status)::text = 'authorized'::text);

CREATE INDEX checkout_led ON public.checkout_checkout USING btree (lead_id) WHERE (lead_id IS NOT NULL);

CREATE INDEX checkout_listed ON public.checkout_checkout USING btree (merchant_id, created_at, id);

CREATE INDEX checkout_merchantcustomer_customer_id_74869c34 ON public.checkout_merchantcustomer USING btree (customer_id);

CREATE INDEX checkout_of_status ON public.checkout_checkout USING btree (merchant_id, status, created_at, id);

CREATE INDEX checkout_order_ids ON public.checkout_checkout USING btree (merchant_id, upper((merchant_order_id)::text) text_pattern_ops);

CREATE INDEX checkout_paymentrequest_checkout_id_522c2578 ON public.checkout_paymentrequest USING btree (checkout_id);

CREATE INDEX checkout_paymentrequest_mate_id_c7e8e1bc ON public.checkout_paymentrequest USING btree (mate_id);

CREATE INDEX checkout_paymentrequest_payment_id_6f32751f ON public.checkout_paymentrequest USING btree (payment_id);

CREATE INDEX checkout_paymentrequest_token_digest_fcf5e98d_like ON public.checkout_paymentrequest USING btree (token_digest varchar_pattern_ops);

CREATE INDEX checkout_refund_checkout_id_3d4e2cf5 ON public.checkout_refund USING btree (checkout_id);

CREATE INDEX checkout_replacedlink_share_id_98fa31e2 ON public.checkout_replacedlink USING btree (share_id);

CREATE INDEX checkout_replacedlink_token_digest_45fa849d_like ON public.checkout_replacedlink USING btree (token_digest varchar_pattern_ops);

CREATE INDEX checkout_split ON public.checkout_checkout USING btree (merchant_id, created_at, id) WHERE (people > 1);

CREATE INDEX checkout_unpaid ON public.checkout_checkout USING btree (payable_until) WHERE ((status)::text = 'created'::text);

CREATE INDEX customer_cards ON public.checkout_customer USING btree (erased_at) WHERE ((cards_erased_at IS NULL) AND (erased_at IS NOT NULL));

CREATE INDEX customer_known ON public.checkout_customer USING btree (id) WHERE (erased_at IS NULL);

CREATE INDEX delivery_leased ON public.webhooks_delivery_pending USING btree (lease_until) WHERE (lease_token IS NOT NULL);

CREATE INDEX delivery_parked ON ONLY public.webhooks_delivery_ended USING btree (merchant_id, ended_at) WHERE ((status)::text = 'parked'::text);

CREATE INDEX delivery_parked_lately ON ONLY public.webhooks_delivery_ended USING btree (ended_at) WHERE ((status)::text = 'parked'::text);

CREATE INDEX delivery_urgent ON public.webhooks_delivery_pending USING btree (next_attempt_at) WHERE (is_urgent AND (lease_token IS NULL));

CREATE INDEX delivery_waiting ON public.webhooks_delivery_pending USING btree (subscription_id, is_urgent, next_attempt_at, id) WHERE (lease_token IS NULL);

CREATE INDEX discrepancy_to_mail ON public.payments_discrepancy USING btree (created_at) WHERE (mailed_at IS NULL);

CREATE INDEX dispute_urgency ON public.payments_dispute USING btree (closed_at DESC, respond_by, id DESC);

CREATE INDEX event_of_checkout ON ONLY public.webhooks_event USING btree (checkout_uuid);

CREATE INDEX event_personal ON ONLY public.webhooks_event USING btree (created_at) WHERE ((body_deleted_at IS NULL) AND ((type)::text = 'marketing.opted_in'::text));

CREATE INDEX event_written ON ONLY public.webhooks_event USING btree (merchant_id, written_at, id);

CREATE INDEX event_written_seldom ON ONLY public.webhooks_event USING btree (merchant_id, type, written_at, id) WHERE ((type)::text <> 'checkout.authorized'::text);

CREATE INDEX hosted_page_checkou_3e31dd_idx ON public.hosted_page_smsmessage USING btree (checkout_uuid);

CREATE INDEX hosted_page_checkou_fa6b5f_idx ON public.hosted_page_optin USING btree (checkout_uuid);

CREATE INDEX hosted_page_email_d_ebd0c9_idx ON public.hosted_page_optin USING btree (email_digest);

CREATE INDEX hosted_page_knownbrowser_token_digest_e70d1b07_like ON public.hosted_page_knownbrowser USING btree (token_digest varchar_pattern_ops);

CREATE INDEX hosted_page_optin_person_id_3ce24262 ON public.hosted_page_optin USING btree (person_id);

CREATE INDEX hosted_page_optin_text_id_725936be ON public.hosted_page_optin USING btree (text_id);

CREATE INDEX hosted_page_optintext_merchant_id_6ab4e91e ON public.hosted_page_optintext USING btree (merchant_id);

CREATE INDEX hosted_page_payersignin_customer_uuid_c82ef423 ON public.hosted_page_payersignin USING btree (customer_uuid);

CREATE INDEX hosted_page_phone_d_3df5e3_idx ON public.hosted_page_smsmessage USING btree (phone_digest, created_at);

CREATE INDEX hosted_page_smsday_merchant_id_c105cf38 ON public.hosted_page_smsday USING btree (merchant_id);

CREATE INDEX hosted_page_smsstop_number_775d8419_like ON public.hosted_page_smsstop USING btree (number varchar_pattern_ops);

CREATE INDEX hosted_page_subject_7d816d_idx ON public.hosted_page_signincode USING btree (subject, created_at);

CREATE INDEX known_number ON public.hosted_page_knownbrowser USING btree ("left"(phone, 64));

CREATE INDEX lead_notification_due ON public.checkout_leadnotification USING btree (due_at) WHERE (ended_at IS NULL);

CREATE INDEX ledger_sum_begin ON public.payments_ledgersum USING btree (begin);

CREATE INDEX login_attempt_account ON public.portal_loginattempt USING btree (kind, account_digest, created_at DESC);

CREATE INDEX login_attempt_address ON public.portal_loginattempt USING btree (kind, address_digest, created_at DESC);

CREATE INDEX login_attempt_old ON public.portal_loginattempt USING btree (created_at);

CREATE INDEX login_attempt_site ON public.portal_loginattempt USING btree (kind, site_digest, created_at DESC) WHERE (NOT ((site_digest)::text = ''::text));

CREATE INDEX movement_of_dispute ON public.payments_movement USING btree (dispute_id) WHERE (dispute_id IS NOT NULL);

CREATE INDEX note_of_checkout ON public.portal_checkoutnote USING btree (checkout_uuid, created_at, id);

CREATE INDEX notice_dropped ON public.portal_outboundemail USING btree (dropped_at) WHERE (dropped_at IS NOT NULL);

CREATE INDEX notice_due ON public.portal_outboundemail USING btree (next_try_at) WHERE (next_try_at IS NOT NULL);

CREATE UNIQUE INDEX one_current_secret_per_subscription ON public.webhooks_signingsecret USING btree (subscription_id) WHERE (expires_at IS NULL);

CREATE UNIQUE INDEX one_customer_a_number ON public.checkout_customer USING btree ("left"(phone, 64));

CREATE UNIQUE INDEX one_id_per_person_and_merchant ON public.checkout_merchantcustomer USING btree (merchant_id, customer_id);

CREATE UNIQUE INDEX one_live_payment_per_subject ON public.payments_payment USING btree (subject) WHERE is_live;

CREATE UNIQUE INDEX one_open_discrepancy_per_kind_and_subject ON public.payments_discrepancy USING btree (kind, subject) NULLS NOT DISTINCT WHERE (closed_at IS NULL);

CREATE UNIQUE INDEX one_open_invitation_per_merchant_and_email ON public.portal_invitation USING btree (merchant_id, lower((email)::text)) WHERE (ended_at IS NULL);

CREATE UNIQUE INDEX one_open_operation_per_payment ON public.payments_operation USING btree (payment_id) WHERE (is_open AND (NOT ((kind)::text = 'refund'::text)));

CREATE UNIQUE INDEX one_person_per_email ON public.portal_user USING btree (lower((email)::text));

CREATE UNIQUE INDEX one_proof_of_everything_at_a_time ON public.checkout_proofrun USING btree (ended_at) NULLS NOT DISTINCT WHERE (ended_at IS NULL);

CREATE UNIQUE INDEX one_refund_that_stands_per_checkout ON public.checkout_refund USING btree (checkout_id) WHERE ((status)::text = ANY ((ARRAY['pending'::character varying, 'settled'::character varying])::text[]));

CREATE UNIQUE INDEX one_role_per_person_and_merchant ON public.portal_membership USING btree (merchant_id, user_id);

CREATE UNIQUE INDEX one_running_trial_of_a_case ON public.portal_trial USING btree (merchant_id, "case") WHERE (ended_at IS NULL);

CREATE UNIQUE INDEX one_subscription_per_merchant ON public.webhooks_subscription USING btree (merchant_id) WHERE (ended_at IS NULL);

CREATE UNIQUE INDEX one_succeeded_capture_per_payment ON public.payments_operation USING btree (payment_id) WHERE (((kind)::text = 'capture'::text) AND ((state)::text = 'succeeded'::text));

CREATE UNIQUE INDEX one_switch_per_merchant ON public.payments_switch USING btree (merchant_id) NULLS NOT DISTINCT;

CREATE INDEX operation_due ON public.payments_operation USING btree (next_attempt_at) WHERE ((state)::text = ANY ((ARRAY['planned'::character varying, 'in_flight'::character varying, 'needs_action'::character varying, 'pending'::character varying, 'unknown'::character varying])::text[]));

CREATE INDEX operation_ended ON public.payments_operation USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX operation_refund ON public.payments_operation USING btree (refund_uuid) WHERE (refund_uuid IS NOT NULL);

CREATE INDEX operation_resends ON public.payments_operation USING btree (resends_id) WHERE (resends_id IS NOT NULL);

CREATE INDEX operation_share ON public.payments_operation USING btree (share_uuid) WHERE (share_uuid IS NOT NULL);

CREATE INDEX pay_link_open ON public.checkout_paymentrequest USING btree (expires_at) WHERE ((status)::text = 'open'::text);

CREATE INDEX payment_by_card ON public.payments_payment USING btree (merchant_id, card_last4, created_at);

CREATE INDEX payments_balanceentry_merchant_id_e004665f ON public.payments_balanceentry USING btree (merchant_id);

CREATE INDEX payments_booking_checkout_uuid_9d9c9ad5 ON public.payments_booking USING btree (checkout_uuid);

CREATE INDEX payments_booking_operation_id_cae7a8c4 ON public.payments_booking USING btree (operation_id);

CREATE INDEX payments_booking_payment_id_f546a0d0 ON public.payments_booking USING btree (payment_id);

CREATE INDEX payments_discrepancy_merchant_id_d09d108c ON public.payments_discrepancy USING btree (merchant_id);

CREATE INDEX payments_discrepancy_operation_id_d016e6fd ON public.payments_discrepancy USING btree (operation_id);

CREATE INDEX payments_dispute_checkout_uuid_0d39fef0 ON public.payments_dispute USING btree (checkout_uuid);

CREATE INDEX payments_dispute_payment_id_2344937c ON public.payments_dispute USING btree (payment_id);

CREATE INDEX payments_inquiry_due_at_c1b019c4 ON public.payments_inquiry USING btree (due_at);

CREATE INDEX payments_movement_checkout_uuid_f3a63a03 ON public.payments_movement USING btree (checkout_uuid);

CREATE INDEX payments_movement_operation_id_c2a161ae ON public.payments_movement USING btree (operation_id);

CREATE INDEX payments_operation_payment_id_33bd387a ON public.payments_operation USING btree (payment_id);

CREATE INDEX payments_pa_checkou_95985e_idx ON public.payments_payment USING btree (checkout_uuid);

CREATE INDEX payments_pa_subject_e184be_idx ON public.payments_payment USING btree (subject);

CREATE INDEX payments_po_checkou_0c6568_idx ON public.payments_posting USING btree (checkout_uuid);

CREATE INDEX payments_switch_merchant_id_d857fe37 ON public.payments_switch USING btree (merchant_id);

CREATE INDEX portal_apiclient_client_id_8d5e8524_like ON public.portal_apiclient USING btree (client_id varchar_pattern_ops);

CREATE INDEX portal_apiclient_client_secret_048ef0b8 ON public.portal_apiclient USING btree (client_secret);

CREATE INDEX portal_apiclient_client_secret_048ef0b8_like ON public.portal_apiclient USING btree (client_secret varchar_pattern_ops);

CREATE INDEX portal_apiclient_merchant_id_26c7edb9 ON public.portal_apiclient USING btree (merchant_id);

CREATE INDEX portal_apiclient_user_id_faadf8b7 ON public.portal_apiclient USING btree (user_id);

CREATE INDEX portal_audi_merchan_7ca268_idx ON public.portal_auditentry USING btree (merchant_id, created_at DESC, id DESC);

CREATE INDEX portal_auditentry_client_id_7ab30d12 ON public.portal_auditentry USING btree (client_id);

CREATE INDEX portal_auditentry_merchant_id_6b626f3f ON public.portal_auditentry USING btree (merchant_id);

CREATE INDEX portal_auditentry_user_id_7cff3abf ON public.portal_auditentry USING btree (user_id);

CREATE INDEX portal_deliveryhour_merchant_id_bf84289b ON public.portal_deliveryhour USING btree (merchant_id);

CREATE INDEX portal_invitation_invited_by_id_d2804315 ON public.portal_invitation USING btree (invited_by_id);

CREATE INDEX portal_invitation_merchant_id_1abf5828 ON public.portal_invitation USING btree (merchant_id);

CREATE INDEX portal_invitation_token_digest_6b5e1ebf_like ON public.portal_invitation USING btree (token_digest varchar_pattern_ops);

CREATE INDEX portal_membership_merchant_id_f001b5c8 ON public.portal_membership USING btree (merchant_id);

CREATE INDEX portal_membership_user_id_977f1295 ON public.portal_membership USING btree (user_id);

CREATE INDEX portal_outboundemail_merchant_id_ef22ae28 ON public.portal_outboundemail USING btree (merchant_id);

CREATE INDEX portal_paymenthour_merchant_id_d8596d5a ON public.portal_paymenthour USING btree (merchant_id);

CREATE INDEX portal_previouspassword_user_id_3c71f4d8 ON public.portal_previouspassword USING btree (user_id);

CREATE INDEX portal_user_email_56c7e8c6_like ON public.portal_user USING btree (email varchar_pattern_ops);

CREATE INDEX portal_user_groups_group_id_39d85d73 ON public.portal_user_groups USING btree (group_id);

CREATE INDEX portal_user_groups_user_id_120e8705 ON public.portal_user_groups USING btree (user_id);

CREATE INDEX portal_user_user_permissions_permission_id_f211252b ON public.portal_user_user_permissions USING btree (permission_id);

CREATE INDEX portal_user_user_permissions_user_id_fe5a2108 ON public.portal_user_user_permissions USING btree (user_id);

CREATE INDEX posting_moved ON public.payments_posting USING btree (merchant_id, account, created_at, id) INCLUDE (amount, currency);

CREATE INDEX prefill_number ON public.checkout_prefill USING btree ("left"(phone, 64));

CREATE INDEX refund_failed ON public.checkout_refund USING btree (merchant_id, created_at) WHERE ((status)::text = 'failed'::text);

CREATE INDEX refund_listed ON public.checkout_refund USING btree (merchant_id, created_at, id);

CREATE INDEX share_asked_of_number ON public.checkout_paymentrequest USING btree ("left"(phone, 64)) WHERE (NOT ("left"(phone, 64) = ''::text));

CREATE INDEX share_named ON public.checkout_paymentrequest USING btree (id) WHERE (NOT ((name)::text = ''::text));

CREATE INDEX share_pledged ON public.checkout_paymentrequest USING btree (checkout_id) WHERE ((status)::text = 'pledged'::text);

CREATE INDEX share_take_address ON public.hosted_page_sharetake USING btree (address_digest, created_at);

CREATE INDEX share_take_site ON public.hosted_page_sharetake USING btree (site_digest, created_at) WHERE (NOT ((site_digest)::text = ''::text));

CREATE INDEX sms_address ON public.hosted_page_smsmessage USING btree (address_digest, created_at) WHERE is_counted;

CREATE INDEX sms_counted ON public.hosted_page_smsmessage USING btree (created_at) WHERE is_counted;

CREATE INDEX sms_open ON public.hosted_page_smsmessage USING btree (ends_at) WHERE (ended_at IS NULL);

CREATE INDEX sms_range ON public.hosted_page_smsmessage USING btree (range_digest, created_at) WHERE is_counted;

CREATE INDEX sms_site ON public.hosted_page_smsmessage USING btree (site_digest, created_at) WHERE (is_counted AND (NOT ((site_digest)::text = ''::text)));

CREATE INDEX trial_due ON public.portal_trial USING btree (next_look_at) WHERE (next_look_at IS NOT NULL);

CREATE INDEX trial_of_merchant ON public.portal_trial USING btree (merchant_id, created_at DESC);

CREATE INDEX usersessions_usersession_session_key_fd35de43_like ON public.usersessions_usersession USING btree (session_key varchar_pattern_ops);

CREATE INDEX usersessions_usersession_user_id_af5e0a6d ON public.usersessions_usersession USING btree (user_id);

CREATE INDEX webhooks_attempt_default_merchant_id_event_type_started_at__idx ON public.webhooks_attempt_default USING btree (merchant_id, event_type, started_at DESC, id DESC) WHERE ((event_type)::text <> 'checkout.authorized'::text);

CREATE INDEX webhooks_attempt_default_merchant_id_started_at_id_idx ON public.webhooks_attempt_default USING btree (merchant_id, started_at, id);

CREATE INDEX webhooks_attempt_default_merchant_id_started_at_id_idx1 ON public.webhooks_attempt_default USING btree (merchant_id, started_at DESC, id DESC) WHERE (error_message IS NOT NULL);

CREATE INDEX webhooks_attempt_default_started_at_idx ON public.webhooks_attempt_default USING brin (started_at) WITH (autosummarize='on', pages_per_range='32');

CREATE INDEX webhooks_delivery_ended_default_ended_at_idx ON public.webhooks_delivery_ended_default USING btree (ended_at) WHERE ((status)::text = 'parked'::text);

CREATE INDEX webhooks_delivery_ended_default_merchant_id_ended_at_idx ON public.webhooks_delivery_ended_default USING btree (merchant_id, ended_at) WHERE ((status)::text = 'parked'::text);

CREATE INDEX webhooks_event_default_checkout_uuid_idx ON public.webhooks_event_default USING btree (checkout_uuid);

CREATE INDEX webhooks_event_default_created_at_idx ON public.webhooks_event_default USING btree (created_at) WHERE ((body_deleted_at IS NULL) AND ((type)::text = 'marketing.opted_in'::text));

CREATE INDEX webhooks_event_default_merchant_id_type_written_at_id_idx ON public.webhooks_event_default USING btree (merchant_id, type, written_at, id) WHERE ((type)::text <> 'checkout.authorized'::text);

CREATE INDEX webhooks_event_default_merchant_id_written_at_id_idx ON public.webhooks_event_default USING btree (merchant_id, written_at, id);

CREATE INDEX webhooks_signingsecret_subscription_id_af9cb66e ON public.webhooks_signingsecret USING btree (subscription_id);

CREATE INDEX webhooks_subscription_merchant_id_1b31eb86 ON public.webhooks_subscription USING btree (merchant_id);

ALTER INDEX public.apicall_of_checkout ATTACH PARTITION public.checkout_apicall_default_merchant_id_checkout_uuid_created__idx;

ALTER INDEX public.apicall_listed ATTACH PARTITION public.checkout_apicall_default_merchant_id_created_at_id_idx;

ALTER INDEX public.apicall_request ATTACH PARTITION public.checkout_apicall_default_merchant_id_request_id_idx;

ALTER INDEX public.checkout_apicall_pkey ATTACH PARTITION public.checkout_apicall_default_pkey;

ALTER INDEX public.attempt_seldom ATTACH PARTITION public.webhooks_attempt_default_merchant_id_event_type_started_at__idx;

ALTER INDEX public.attempt_listed ATTACH PARTITION public.webhooks_attempt_default_merchant_id_started_at_id_idx;

ALTER INDEX public.attempt_refused ATTACH PARTITION public.webhooks_attempt_default_merchant_id_started_at_id_idx1;

ALTER INDEX public.webhooks_attempt_pkey ATTACH PARTITION public.webhooks_attempt_default_pkey;

ALTER INDEX public.attempt_of_hour ATTACH PARTITION public.webhooks_attempt_default_started_at_idx;

ALTER INDEX public.delivery_parked_lately ATTACH PARTITION public.webhooks_delivery_ended_default_ended_at_idx;

ALTER INDEX public.delivery_parked ATTACH PARTITION public.webhooks_delivery_ended_default_merchant_id_ended_at_idx;

ALTER INDEX public.webhooks_delivery_ended_pkey ATTACH PARTITION public.webhooks_delivery_ended_default_pkey;

ALTER INDEX public.event_of_checkout ATTACH PARTITION public.webhooks_event_default_checkout_uuid_idx;

ALTER INDEX public.event_personal ATTACH PARTITION public.webhooks_event_default_created_at_idx;

ALTER INDEX public.event_written_seldom ATTACH PARTITION public.webhooks_event_default_merchant_id_type_written_at_id_idx;

ALTER INDEX public.event_written ATTACH PARTITION public.webhooks_event_default_merchant_id_written_at_id_idx;

ALTER INDEX public.webhooks_event_pkey ATTACH PARTITION public.webhooks_event_default_pkey;

CREATE CONSTRAINT TRIGGER a_transaction_sums_to_zero AFTER INSERT ON public.payments_posting DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.posting_balances();

CREATE TRIGGER audit_entries_are_append_only BEFORE DELETE OR UPDATE ON public.portal_auditentry FOR EACH ROW EXECUTE FUNCTION public.append_only();

CREATE TRIGGER bookings_are_append_only BEFORE UPDATE ON public.payments_booking FOR EACH ROW WHEN (((NOT public.is_advanced(old.checkout_uuid)) OR ((to_jsonb(old.*) - 'created_at'::text) IS DISTINCT FROM (to_jsonb(new.*) - 'created_at'::text)))) EXECUTE FUNCTION public.append_only();

CREATE TRIGGER bookings_stay BEFORE DELETE ON public.payments_booking FOR EACH ROW EXECUTE FUNCTION public.append_only();

CREATE TRIGGER changes_are_append_only BEFORE UPDATE ON public.checkout_change FOR EACH ROW WHEN (((NOT public.is_advanced(old.checkout_id)) OR ((to_jsonb(old.*) - 'created_at'::text) IS DISTINCT FROM (to_jsonb(new.*) - 'created_at'::text)))) EXECUTE FUNCTION public.append_only();

CREATE TRIGGER changes_stay BEFORE DELETE ON public.checkout_change FOR EACH ROW EXECUTE FUNCTION public.append_only();

CREATE TRIGGER checkout_begins BEFORE INSERT ON public.checkout_checkout FOR EACH ROW EXECUTE FUNCTION public.checkout_moves();

CREATE TRIGGER checkout_moves BEFORE UPDATE OF status ON public.checkout_checkout FOR EACH ROW WHEN (((old.status)::text IS DISTINCT FROM (new.status)::text)) EXECUTE FUNCTION public.checkout_moves();

CREATE TRIGGER checkout_notes_are_append_only BEFORE UPDATE ON public.portal_checkoutnote FOR EACH ROW WHEN (((NOT public.is_advanced(old.checkout_uuid)) OR ((to_jsonb(old.*) - 'created_at'::text) IS DISTINCT FROM (to_jsonb(new.*) - 'created_at'::text)))) EXECUTE FUNCTION public.append_only();

CREATE TRIGGER customers_stay BEFORE DELETE ON public.checkout_customer FOR EACH ROW EXECUTE FUNCTION public.append_only();

CREATE TRIGGER former_accounts_are_kept AFTER UPDATE OF provider_account ON public.payments_merchant FOR EACH ROW WHEN (((old.provider_account)::text <> (new.provider_account)::text)) EXECUTE FUNCTION public.former_account_is_kept();

CREATE TRIGGER merchants_stay BEFORE DELETE ON public.payments_merchant FOR EACH ROW EXECUTE FUNCTION public.append_only();

CREATE TRIGGER movements_are_append_only BEFORE UPDATE ON public.payments_movement FOR EACH ROW WHEN (((NOT public.is_advanced(old.checkout_uuid)) OR ((to_jsonb(old.*) - '{occurred_at,recorded_at}'::text[]) IS DISTINCT FROM (to_jsonb(new.*) - '{occurred_at,recorded_at}'::text[])))) EXECUTE FUNCTION public.append_only();

CREATE TRIGGER movements_stay BEFORE DELETE ON public.payments_movement FOR EACH ROW EXECUTE FUNCTION public.append_only();

CREATE TRIGGER opt_in_texts_are_append_only BEFORE DELETE OR UPDATE ON public.hosted_page_optintext FOR EACH ROW EXECUTE FUNCTION public.append_only();

CREATE TRIGGER opt_ins_are_append_only BEFORE UPDATE ON public.hosted_page_optin FOR EACH ROW WHEN (((((to_jsonb(old.*) - 'email'::text) - 'email_digest'::text) IS DISTINCT FROM ((to_jsonb(new.*) - 'email'::text) - 'email_digest'::text)) OR (((old.email_digest)::text = ''::text) AND ((new.email_digest)::text <> ''::text)) OR ((new.email_digest)::text !~ '^([0-9a-f]{64})?$'::text))) EXECUTE FUNCTION public.append_only();

CREATE TRIGGER opt_ins_stay BEFORE DELETE ON public.hosted_page_optin FOR EACH ROW EXECUTE FUNCTION public.append_only();

CREATE TRIGGER orders_stay BEFORE DELETE ON public.checkout_checkout FOR EACH ROW EXECUTE FUNCTION public.append_only();

CREATE TRIGGER payments_stay BEFORE DELETE ON public.payments_payment FOR EACH ROW EXECUTE FUNCTION public.append_only();

CREATE TRIGGER postings_are_append_only BEFORE DELETE OR UPDATE ON public.payments_posting FOR EACH ROW EXECUTE FUNCTION public.append_only();

CREATE TRIGGER postings_go_into_open_days BEFORE INSERT ON public.payments_posting FOR EACH ROW EXECUTE FUNCTION public.posting_goes_into_an_open_day();

CREATE TRIGGER share_begins BEFORE INSERT ON public.checkout_paymentrequest FOR EACH ROW EXECUTE FUNCTION public.share_moves();

CREATE TRIGGER share_moves BEFORE UPDATE OF status ON public.checkout_paymentrequest FOR EACH ROW WHEN (((old.status)::text IS DISTINCT FROM (new.status)::text)) EXECUTE FUNCTION public.share_moves();

ALTER TABLE ONLY public.bank_banknotification
    ADD CONSTRAINT bank_banknotification_call_id_891dc74f_fk_bank_call_key FOREIGN KEY (call_id) REFERENCES public.bank_call(key) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.bank_banknotification
    ADD CONSTRAINT bank_banknotification_dispute_id_a0cbd443_fk_bank_dispute_id FOREIGN KEY (dispute_id) REFERENCES public.bank_dispute(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.bank_call
    ADD CONSTRAINT bank_call_charge_id_88365c58_fk_bank_charge_id FOREIGN KEY (charge_id) REFERENCES public.bank_charge(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.bank_dispute
    ADD CONSTRAINT bank_dispute_charge_id_c8dac7c3_fk_bank_charge_id FOREIGN KEY (charge_id) REFERENCES public.bank_charge(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_booking
    ADD CONSTRAINT booking_checkout_fk FOREIGN KEY (checkout_uuid) REFERENCES public.checkout_checkout(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_booking
    ADD CONSTRAINT booking_share_fk FOREIGN KEY (share_uuid) REFERENCES public.checkout_paymentrequest(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_bill
    ADD CONSTRAINT checkout_bill_checkout_id_3ae0177a_fk_checkout_checkout_id FOREIGN KEY (checkout_id) REFERENCES public.checkout_checkout(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_change
    ADD CONSTRAINT checkout_change_checkout_id_63cc1385_fk_checkout_checkout_id FOREIGN KEY (checkout_id) REFERENCES public.checkout_checkout(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_checkout
    ADD CONSTRAINT checkout_checkout_lead_id_2af14090_fk_checkout_customer_id FOREIGN KEY (lead_id) REFERENCES public.checkout_customer(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_checkout
    ADD CONSTRAINT checkout_checkout_payment_id_a19f4575_fk_payments_payment_id FOREIGN KEY (payment_id) REFERENCES public.payments_payment(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_grouplink
    ADD CONSTRAINT checkout_grouplink_checkout_id_7dcdb6d0_fk_checkout_checkout_id FOREIGN KEY (checkout_id) REFERENCES public.checkout_checkout(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_idempotencykey
    ADD CONSTRAINT checkout_idempotency_merchant_id_7847ff05_fk_payments_ FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_leadnotification
    ADD CONSTRAINT checkout_leadnotific_checkout_id_125a9866_fk_checkout_ FOREIGN KEY (checkout_id) REFERENCES public.checkout_checkout(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_merchantcustomer
    ADD CONSTRAINT checkout_merchantcus_customer_id_74869c34_fk_checkout_ FOREIGN KEY (customer_id) REFERENCES public.checkout_customer(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_paymentrequest
    ADD CONSTRAINT checkout_paymentrequ_checkout_id_522c2578_fk_checkout_ FOREIGN KEY (checkout_id) REFERENCES public.checkout_checkout(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_paymentrequest
    ADD CONSTRAINT checkout_paymentrequ_mate_id_c7e8e1bc_fk_checkout_ FOREIGN KEY (mate_id) REFERENCES public.checkout_customer(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_paymentrequest
    ADD CONSTRAINT checkout_paymentrequ_payment_id_6f32751f_fk_payments_ FOREIGN KEY (payment_id) REFERENCES public.payments_payment(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_prefill
    ADD CONSTRAINT checkout_prefill_checkout_id_3c0ead43_fk_checkout_checkout_id FOREIGN KEY (checkout_id) REFERENCES public.checkout_checkout(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_refund
    ADD CONSTRAINT checkout_refund_checkout_id_3d4e2cf5_fk_checkout_checkout_id FOREIGN KEY (checkout_id) REFERENCES public.checkout_checkout(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_refund
    ADD CONSTRAINT checkout_refund_merchant_id_45ac1e14_fk_payments_merchant_id FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.checkout_replacedlink
    ADD CONSTRAINT checkout_replacedlin_share_id_98fa31e2_fk_checkout_ FOREIGN KEY (share_id) REFERENCES public.checkout_paymentrequest(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_dispute
    ADD CONSTRAINT dispute_checkout_fk FOREIGN KEY (checkout_uuid) REFERENCES public.checkout_checkout(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.hosted_page_optin
    ADD CONSTRAINT hosted_page_optin_person_id_3ce24262_fk_checkout_ FOREIGN KEY (person_id) REFERENCES public.checkout_merchantcustomer(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.hosted_page_optin
    ADD CONSTRAINT hosted_page_optin_text_id_725936be_fk_hosted_page_optintext_id FOREIGN KEY (text_id) REFERENCES public.hosted_page_optintext(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.hosted_page_optintext
    ADD CONSTRAINT hosted_page_optintex_merchant_id_6ab4e91e_fk_payments_ FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.hosted_page_smsday
    ADD CONSTRAINT hosted_page_smsday_merchant_id_c105cf38_fk_payments_merchant_id FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.hosted_page_smsmessage
    ADD CONSTRAINT hosted_page_smsmessa_merchant_id_c9a3b68c_fk_payments_ FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_movement
    ADD CONSTRAINT movement_checkout_fk FOREIGN KEY (checkout_uuid) REFERENCES public.checkout_checkout(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_operation
    ADD CONSTRAINT operation_refund_fk FOREIGN KEY (refund_uuid) REFERENCES public.checkout_refund(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_operation
    ADD CONSTRAINT operation_share_fk FOREIGN KEY (share_uuid) REFERENCES public.checkout_paymentrequest(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_payment
    ADD CONSTRAINT payment_checkout_fk FOREIGN KEY (checkout_uuid) REFERENCES public.checkout_checkout(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_balanceentry
    ADD CONSTRAINT payments_balanceentr_merchant_id_e004665f_fk_payments_ FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_booking
    ADD CONSTRAINT payments_booking_operation_id_cae7a8c4_fk_payments_operation_id FOREIGN KEY (operation_id) REFERENCES public.payments_operation(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_booking
    ADD CONSTRAINT payments_booking_payment_id_f546a0d0_fk_payments_payment_id FOREIGN KEY (payment_id) REFERENCES public.payments_payment(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_booking
    ADD CONSTRAINT payments_booking_reverses_id_63f97052_fk_payments_booking_id FOREIGN KEY (reverses_id) REFERENCES public.payments_booking(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_discrepancy
    ADD CONSTRAINT payments_discrepancy_merchant_id_d09d108c_fk_payments_ FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_discrepancy
    ADD CONSTRAINT payments_discrepancy_operation_id_d016e6fd_fk_payments_ FOREIGN KEY (operation_id) REFERENCES public.payments_operation(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_dispute
    ADD CONSTRAINT payments_dispute_payment_id_2344937c_fk_payments_payment_id FOREIGN KEY (payment_id) REFERENCES public.payments_payment(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_formeraccount
    ADD CONSTRAINT payments_formeraccou_merchant_id_64a8840a_fk_payments_ FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_inquiry
    ADD CONSTRAINT payments_inquiry_payment_id_340438f7_fk_payments_payment_id FOREIGN KEY (payment_id) REFERENCES public.payments_payment(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_ledgersum
    ADD CONSTRAINT payments_ledgersum_merchant_id_8be5c0cb_fk_payments_merchant_id FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_logo
    ADD CONSTRAINT payments_logo_merchant_id_cc2eb769_fk_payments_merchant_id FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_movement
    ADD CONSTRAINT payments_movement_dispute_id_68b6feb0_fk_payments_dispute_id FOREIGN KEY (dispute_id) REFERENCES public.payments_dispute(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_movement
    ADD CONSTRAINT payments_movement_operation_id_c2a161ae_fk_payments_ FOREIGN KEY (operation_id) REFERENCES public.payments_operation(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_movement
    ADD CONSTRAINT payments_movement_payment_id_96d7a023_fk_payments_payment_id FOREIGN KEY (payment_id) REFERENCES public.payments_payment(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_operation
    ADD CONSTRAINT payments_operation_payment_id_33bd387a_fk_payments_payment_id FOREIGN KEY (payment_id) REFERENCES public.payments_payment(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_operation
    ADD CONSTRAINT payments_operation_resends_id_37f7f9b4_fk_payments_operation_id FOREIGN KEY (resends_id) REFERENCES public.payments_operation(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_switch
    ADD CONSTRAINT payments_switch_merchant_id_d857fe37_fk_payments_merchant_id FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_apiclient
    ADD CONSTRAINT portal_apiclient_holder_id_05e346bd_fk_portal_user_id FOREIGN KEY (holder_id) REFERENCES public.portal_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_apiclient
    ADD CONSTRAINT portal_apiclient_merchant_id_26c7edb9_fk_payments_merchant_id FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_apiclient
    ADD CONSTRAINT portal_apiclient_previous_holder_id_8f63d2a3_fk_portal_user_id FOREIGN KEY (previous_holder_id) REFERENCES public.portal_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_apiclient
    ADD CONSTRAINT portal_apiclient_user_id_faadf8b7_fk_portal_user_id FOREIGN KEY (user_id) REFERENCES public.portal_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_auditentry
    ADD CONSTRAINT portal_auditentry_client_id_7ab30d12_fk_portal_apiclient_id FOREIGN KEY (client_id) REFERENCES public.portal_apiclient(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_auditentry
    ADD CONSTRAINT portal_auditentry_merchant_id_6b626f3f_fk_payments_merchant_id FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_auditentry
    ADD CONSTRAINT portal_auditentry_user_id_7cff3abf_fk_portal_user_id FOREIGN KEY (user_id) REFERENCES public.portal_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_checkoutnote
    ADD CONSTRAINT portal_checkoutnote_merchant_id_356cdd46_fk_payments_ FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_checkoutnote
    ADD CONSTRAINT portal_checkoutnote_user_id_f4b67da2_fk_portal_user_id FOREIGN KEY (user_id) REFERENCES public.portal_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_deliveryhour
    ADD CONSTRAINT portal_deliveryhour_merchant_id_bf84289b_fk_payments_ FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_invitation
    ADD CONSTRAINT portal_invitation_invited_by_id_d2804315_fk_portal_user_id FOREIGN KEY (invited_by_id) REFERENCES public.portal_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_invitation
    ADD CONSTRAINT portal_invitation_merchant_id_1abf5828_fk_payments_merchant_id FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_membership
    ADD CONSTRAINT portal_membership_merchant_id_f001b5c8_fk_payments_merchant_id FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_membership
    ADD CONSTRAINT portal_membership_user_id_977f1295_fk_portal_user_id FOREIGN KEY (user_id) REFERENCES public.portal_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_outboundemail
    ADD CONSTRAINT portal_outboundemail_merchant_id_ef22ae28_fk_payments_ FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_paymenthour
    ADD CONSTRAINT portal_paymenthour_merchant_id_d8596d5a_fk_payments_merchant_id FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_previouspassword
    ADD CONSTRAINT portal_previouspassword_user_id_3c71f4d8_fk_portal_user_id FOREIGN KEY (user_id) REFERENCES public.portal_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_trial
    ADD CONSTRAINT portal_trial_merchant_id_9711d103_fk_payments_merchant_id FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_trial
    ADD CONSTRAINT portal_trial_user_id_29ac633e_fk_portal_user_id FOREIGN KEY (user_id) REFERENCES public.portal_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_user_groups
    ADD CONSTRAINT portal_user_groups_group_id_39d85d73_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES public.auth_group(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_user_groups
    ADD CONSTRAINT portal_user_groups_user_id_120e8705_fk_portal_user_id FOREIGN KEY (user_id) REFERENCES public.portal_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_user_user_permissions
    ADD CONSTRAINT portal_user_user_per_permission_id_f211252b_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES public.auth_permission(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.portal_user_user_permissions
    ADD CONSTRAINT portal_user_user_permissions_user_id_fe5a2108_fk_portal_user_id FOREIGN KEY (user_id) REFERENCES public.portal_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.payments_posting
    ADD CONSTRAINT posting_checkout_fk FOREIGN KEY (checkout_uuid) REFERENCES public.checkout_checkout(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.usersessions_usersession
    ADD CONSTRAINT usersessions_usersession_user_id_af5e0a6d_fk_portal_user_id FOREIGN KEY (user_id) REFERENCES public.portal_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.webhooks_endpoint
    ADD CONSTRAINT webhooks_endpoint_subscription_id_1e065b51_fk_webhooks_ FOREIGN KEY (subscription_id) REFERENCES public.webhooks_subscription(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.webhooks_signingsecret
    ADD CONSTRAINT webhooks_signingsecr_subscription_id_af9cb66e_fk_webhooks_ FOREIGN KEY (subscription_id) REFERENCES public.webhooks_subscription(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.webhooks_subscription
    ADD CONSTRAINT webhooks_subscriptio_merchant_id_1b31eb86_fk_payments_ FOREIGN KEY (merchant_id) REFERENCES public.payments_merchant(id) DEFERRABLE INITIALLY DEFERRED;

