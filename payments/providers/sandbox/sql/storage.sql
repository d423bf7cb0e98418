-- A crash of PostgreSQL empties these tables. The loss is small: their rows are only valid for a minute.

ALTER TABLE bank_cardsession SET UNLOGGED;
ALTER TABLE bank_cardtoken SET UNLOGGED;
