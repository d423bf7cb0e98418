DROP TABLE IF EXISTS webhooks_attempt, webhooks_delivery, webhooks_event;
DROP FUNCTION IF EXISTS drop_partition(name, timestamptz), make_partition(name, date, date), first_id(timestamptz);
