-- Storage options of tables that are written often.

-- A crash of PostgreSQL empties these tables: a payer then asks for another code, and the count of declined cards starts
-- from zero.
ALTER TABLE hosted_page_signincode SET UNLOGGED;
ALTER TABLE hosted_page_cardtry SET UNLOGGED;

-- A claim of a message changes its row. Half of each page is free for the new version, so PostgreSQL updates no index.
ALTER TABLE hosted_page_smsmessage SET (fillfactor = 50);
