"""An opt-in's address may be emptied, by a function that the tables' owner keeps, once its person is erased."""

from django.db import migrations

ERASE = """
DROP TRIGGER opt_ins_are_append_only ON hosted_page_optin;
CREATE TRIGGER opt_ins_are_append_only BEFORE UPDATE ON hosted_page_optin FOR EACH ROW
    WHEN (to_jsonb(OLD) - 'email' - 'email_digest' IS DISTINCT FROM to_jsonb(NEW) - 'email' - 'email_digest'
        OR NEW.email_digest NOT IN (OLD.email_digest, ''))
    EXECUTE FUNCTION append_only();
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
REVOKE ALL ON FUNCTION erase_opt_ins(uuid[], text) FROM PUBLIC;
"""

KEEP = """
DROP FUNCTION erase_opt_ins(uuid[], text);
DROP TRIGGER opt_ins_are_append_only ON hosted_page_optin;
CREATE TRIGGER opt_ins_are_append_only BEFORE UPDATE ON hosted_page_optin FOR EACH ROW
    WHEN (to_jsonb(OLD) - 'email' IS DISTINCT FROM to_jsonb(NEW) - 'email') EXECUTE FUNCTION append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0003_opt_ins_encrypted_anew"), ("checkout", "0003_erased_people")]
    operations = [migrations.RunSQL(ERASE, KEEP)]
