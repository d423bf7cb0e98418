DROP FUNCTION IF EXISTS former_account_is_kept() CASCADE;
DROP FUNCTION IF EXISTS posting_goes_into_an_open_day() CASCADE;
DROP FUNCTION IF EXISTS posting_balances() CASCADE;
DROP FUNCTION IF EXISTS is_advanced(uuid) CASCADE;
DROP FUNCTION IF EXISTS append_only() CASCADE;
DELETE FROM payments_databasemark;
