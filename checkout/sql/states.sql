-- The allowed changes of status, as in checkout/states.py.

CREATE OR REPLACE FUNCTION checkout_moves() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE OR REPLACE TRIGGER checkout_begins BEFORE INSERT ON checkout_checkout FOR EACH ROW EXECUTE FUNCTION checkout_moves();
CREATE OR REPLACE TRIGGER checkout_moves BEFORE UPDATE OF status ON checkout_checkout
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION checkout_moves();

CREATE OR REPLACE FUNCTION share_moves() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE OR REPLACE TRIGGER share_begins BEFORE INSERT ON checkout_paymentrequest FOR EACH ROW EXECUTE FUNCTION share_moves();
CREATE OR REPLACE TRIGGER share_moves BEFORE UPDATE OF status ON checkout_paymentrequest
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION share_moves();
