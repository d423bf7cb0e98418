-- Storage options of tables that are written often.

-- A crash of PostgreSQL empties these: a payer then asks for another code, and declined cards are counted from zero.
ALTER TABLE hosted_page_signincode SET UNLOGGED;
ALTER TABLE hosted_page_cardtry SET UNLOGGED;

-- A claim of a message finds room on the page of the row, and so updates no index.
ALTER TABLE hosted_page_smsmessage SET (fillfactor = 50);
