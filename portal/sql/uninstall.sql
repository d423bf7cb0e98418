DROP TRIGGER IF EXISTS audit_entries_are_append_only ON portal_auditentry;
DROP TRIGGER IF EXISTS checkout_notes_are_append_only ON portal_checkoutnote;
DROP FUNCTION IF EXISTS advance_history(uuid, integer);
