-- Orders and customers are never deleted, and the history of an order never changes.

CREATE TRIGGER orders_stay BEFORE DELETE ON checkout_checkout FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER customers_stay BEFORE DELETE ON checkout_customer FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER changes_stay BEFORE DELETE ON checkout_change FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER changes_are_append_only BEFORE UPDATE ON checkout_change FOR EACH ROW
    WHEN (NOT is_advanced(OLD.checkout_id)
        OR to_jsonb(OLD) - 'created_at' IS DISTINCT FROM to_jsonb(NEW) - 'created_at')
    EXECUTE FUNCTION append_only();
