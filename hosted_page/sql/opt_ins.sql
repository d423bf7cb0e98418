-- The opt-in's texts and ticks are evidence: they never change. An e-mail address can be encrypted again with a new
-- key, or erased. Only the functions below replace its digest.

CREATE TRIGGER opt_in_texts_are_append_only BEFORE UPDATE OR DELETE ON hosted_page_optintext
    FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER opt_ins_stay BEFORE DELETE ON hosted_page_optin FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER opt_ins_are_append_only BEFORE UPDATE ON hosted_page_optin FOR EACH ROW
    WHEN (to_jsonb(OLD) - 'email' - 'email_digest' IS DISTINCT FROM to_jsonb(NEW) - 'email' - 'email_digest'
        OR (OLD.email_digest = '' AND NEW.email_digest <> '')
        OR NEW.email_digest !~ '^([0-9a-f]{64})?$')
    EXECUTE FUNCTION append_only();

-- Empty the e-mail addresses of people who are erased.
CREATE FUNCTION erase_opt_ins(people uuid[], emptied text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
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

-- Replace the digest of an e-mail address after a rotation of LOOKUP_KEY.
CREATE FUNCTION digest_opt_in_again(opt_in uuid, former text, digest text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF digest !~ '^[0-9a-f]{64}$' THEN
        RAISE EXCEPTION 'this is not a digest' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    UPDATE hosted_page_optin SET email_digest = digest WHERE id = opt_in AND email_digest = former;
    RETURN FOUND;
END $$;

REVOKE ALL ON FUNCTION erase_opt_ins(uuid[], text), digest_opt_in_again(uuid, text, text) FROM PUBLIC;
