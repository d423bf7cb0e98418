-- A crash of PostgreSQL empties these: visits to the card page and card tokens are valid for a minute.

ALTER TABLE bank_cardsession SET UNLOGGED;
ALTER TABLE bank_cardtoken SET UNLOGGED;
