-- The former provider accounts of each merchant, so that a repair can find the merchant of a payment there.

CREATE FUNCTION former_account_is_kept() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO payments_formeraccount (merchant_id, provider_account) VALUES (OLD.id, OLD.provider_account)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER former_accounts_are_kept AFTER UPDATE OF provider_account ON payments_merchant
    FOR EACH ROW WHEN (OLD.provider_account <> NEW.provider_account) EXECUTE FUNCTION former_account_is_kept();
