DROP TRIGGER IF EXISTS opt_in_texts_are_append_only ON hosted_page_optintext;
DROP TRIGGER IF EXISTS opt_ins_stay ON hosted_page_optin;
DROP TRIGGER IF EXISTS opt_ins_are_append_only ON hosted_page_optin;
DROP FUNCTION IF EXISTS digest_opt_in_again(uuid, text, text), erase_opt_ins(uuid[], text);
