-- The audit log never changes. A note on an order never changes, and is deleted only when a person is erased.

CREATE TRIGGER audit_entries_are_append_only BEFORE UPDATE OR DELETE ON portal_auditentry
    FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER checkout_notes_are_append_only BEFORE UPDATE ON portal_checkoutnote FOR EACH ROW
    WHEN (NOT is_advanced(OLD.checkout_uuid)
        OR to_jsonb(OLD) - 'created_at' IS DISTINCT FROM to_jsonb(NEW) - 'created_at')
    EXECUTE FUNCTION append_only();
