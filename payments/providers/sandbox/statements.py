"""SQL statements for the sandbox bank: they use up a card token, and read the faults that apply to a call."""

# One statement reads the token and marks it as used, so that only one of two simultaneous calls can use it.
USE_UP_CARD_TOKEN = """
UPDATE bank_cardtoken SET used_at = clock_timestamp() WHERE digest = %s AND subject = %s AND used_at IS NULL
RETURNING id, last4
"""
# One statement reads all faults, because it runs for every call to the bank.
READ_FAULTS_OF_CALL = """
SELECT EXISTS (SELECT FROM bank_brokenkey WHERE key = %s),
    EXISTS (SELECT FROM bank_fault WHERE verb = %s AND times > 0),
    EXISTS (SELECT FROM bank_charge WHERE payment = %s AND silent_until > clock_timestamp()),
    coalesce(
        (SELECT last4 FROM bank_charge WHERE payment = %s), (SELECT last4 FROM bank_cardtoken WHERE digest = %s)
    )
"""
