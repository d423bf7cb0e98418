"""Items lie in their bills alone. The release before reads and writes them through a view of the table's name.

The view has the table's columns, types and grants: that release knows no difference, and its statements go on. The next
version may drop it.
"""

from django.db import migrations

VIEW = """
-- In the order in which a creation takes them: it would wait for the one and we for the other.
LOCK TABLE checkout_checkout IN ACCESS EXCLUSIVE MODE;
LOCK TABLE checkout_item IN ACCESS EXCLUSIVE MODE;
CREATE VIEW checkout_item_of_bill AS
SELECT md5(bill.checkout_id::text || number)::uuid AS id, bill.checkout_id, (number - 1)::smallint AS position,
    (line ->> 0)::varchar(255) AS item_ref, (line ->> 1)::varchar(255) AS name, (line ->> 2)::integer AS quantity,
    (line ->> 3)::bigint AS unit_price, (line ->> 4)::varchar(3) AS currency, (line ->> 5)::varchar(64) AS category,
    nullif(line -> 6, 'null'::jsonb) AS custom_data
FROM checkout_bill bill, jsonb_array_elements(bill.lines) WITH ORDINALITY AS of_bill (line, number);

CREATE FUNCTION item_goes_into_its_bill() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO checkout_bill AS bill (checkout_id, lines) VALUES (NEW.checkout_id, jsonb_build_array(jsonb_build_array(
        NEW.item_ref, NEW.name, NEW.quantity, NEW.unit_price, NEW.currency, NEW.category, NEW.custom_data)))
    ON CONFLICT (checkout_id) DO UPDATE SET lines = bill.lines || EXCLUDED.lines;
    RETURN NEW;
END $$;
CREATE TRIGGER item_goes_into_its_bill INSTEAD OF INSERT ON checkout_item_of_bill
    FOR EACH ROW EXECUTE FUNCTION item_goes_into_its_bill();

DO $$
DECLARE
    given record;
BEGIN
    FOR given IN SELECT grantee, privilege_type FROM pg_class, aclexplode(relacl)
        WHERE oid = 'checkout_item'::regclass AND grantee NOT IN (0, relowner)
    LOOP
        EXECUTE format('GRANT %s ON checkout_item_of_bill TO %s', given.privilege_type, given.grantee::regrole);
    END LOOP;
END $$;

DROP TRIGGER bill_follows ON checkout_item;
DROP FUNCTION bill_follows();
"""
NO_VIEW = """
DROP VIEW checkout_item;
DROP FUNCTION item_goes_into_its_bill();
"""
BACK = """
INSERT INTO checkout_item (id, checkout_id, position, item_ref, name, quantity, unit_price, currency, category,
    custom_data)
SELECT md5(bill.checkout_id::text || number)::uuid, bill.checkout_id, number - 1, line ->> 0, line ->> 1,
    (line ->> 2)::integer, (line ->> 3)::bigint, line ->> 4, line ->> 5, nullif(line -> 6, 'null'::jsonb)
FROM checkout_bill bill, jsonb_array_elements(bill.lines) WITH ORDINALITY AS of_bill (line, number);
"""
FOLLOW = """
CREATE FUNCTION bill_follows() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO checkout_bill (checkout_id, lines)
    SELECT checkout_id, jsonb_agg(jsonb_build_array(
        item_ref, name, quantity, unit_price, currency, category, custom_data) ORDER BY position)
    FROM made GROUP BY checkout_id
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER bill_follows AFTER INSERT ON checkout_item REFERENCING NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION bill_follows();
"""


class Migration(migrations.Migration):
    dependencies = [("checkout", "0022_bills_of_before")]

    operations = [
        migrations.RunSQL(VIEW, BACK + FOLLOW),
        migrations.DeleteModel("Item"),
        migrations.RunSQL("ALTER VIEW checkout_item_of_bill RENAME TO checkout_item", NO_VIEW),
    ]
