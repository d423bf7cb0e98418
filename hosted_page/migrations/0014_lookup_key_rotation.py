"""LOOKUP_KEY can be replaced: a stop says which key it is of, and the digest of an opt-in can be made again."""

from django.db import migrations, models

AGAIN = """
DROP TRIGGER opt_ins_are_append_only ON hosted_page_optin;
CREATE TRIGGER opt_ins_are_append_only BEFORE UPDATE ON hosted_page_optin FOR EACH ROW
    WHEN (to_jsonb(OLD) - 'email' - 'email_digest' IS DISTINCT FROM to_jsonb(NEW) - 'email' - 'email_digest'
        OR (OLD.email_digest = '' AND NEW.email_digest <> '')
        OR NEW.email_digest !~ '^([0-9a-f]{64})?$')
    EXECUTE FUNCTION append_only();
CREATE FUNCTION digest_opt_in_again(opt_in uuid, former text, digest text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF digest !~ '^[0-9a-f]{64}$' THEN
        RAISE EXCEPTION 'this is not a digest' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    UPDATE hosted_page_optin SET email_digest = digest WHERE id = opt_in AND email_digest = former;
    RETURN FOUND;
END $$;
REVOKE ALL ON FUNCTION digest_opt_in_again(uuid, text, text) FROM PUBLIC;
"""

NEVER = """
DROP FUNCTION digest_opt_in_again(uuid, text, text);
DROP TRIGGER opt_ins_are_append_only ON hosted_page_optin;
CREATE TRIGGER opt_ins_are_append_only BEFORE UPDATE ON hosted_page_optin FOR EACH ROW
    WHEN (to_jsonb(OLD) - 'email' - 'email_digest' IS DISTINCT FROM to_jsonb(NEW) - 'email' - 'email_digest'
        OR NEW.email_digest NOT IN (OLD.email_digest, ''))
    EXECUTE FUNCTION append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("hosted_page", "0013_payer_sign_ins")]
    operations = [
        migrations.RunSQL(AGAIN, NEVER),
        migrations.AddField(
            model_name="smsstop",
            name="key_mark",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Which LOOKUP_KEY the digest is of.",
                max_length=8,
            ),
        ),
    ]
