"""Checks amounts as Stripe does. (Documentation: "Supported currencies": minimum, maximum, special cases)"""

from tests.payments.stripe_peer.errors import Refusal

MAX = 99_999_999
MIN = {"usd": 50, "eur": 50, "gbp": 30, "jpy": 50, "chf": 50, "sek": 300, "dkk": 250, "nok": 300, "pln": 200}
MIN |= {"aud": 50, "cad": 50, "huf": 17500, "czk": 1500, "kwd": 1, "bhd": 1, "tnd": 1, "jod": 1, "omr": 1}
MIN |= {"isk": 1, "ugx": 1, "krw": 50, "clp": 1, "vnd": 1, "brl": 50, "mxn": 1000, "inr": 50, "sgd": 50}
MIN |= {"ars": 50, "cop": 50, "idr": 50, "ils": 50, "php": 50, "rub": 50, "zar": 50}
MIN |= {"hkd": 400, "nzd": 50, "myr": 200, "ron": 200, "aed": 200, "thb": 1000}
STEP = {"kwd": 10, "bhd": 10, "tnd": 10, "jod": 10, "omr": 10, "isk": 100, "ugx": 100}


def check(amount: int, currency: str) -> None:
    """Refuse an unknown currency, and an amount that is too small, too large or not a multiple of the step."""
    name = currency.lower()
    if name not in MIN or name != currency:
        known = ", ".join(sorted(MIN))
        raise Refusal(f"Invalid currency: {currency}. Supported currencies: {known}", param="currency")
    if amount < 1:
        raise Refusal("This value must be greater than or equal to 1.", "parameter_invalid_integer", "amount")
    if amount < MIN[name]:
        raise Refusal(f"Amount must be at least {MIN[name]} {name}", "amount_too_small", "amount")
    if amount > MAX:
        raise Refusal(f"Amount must be no more than {MAX} {name}", "amount_too_large", "amount")
    if amount % STEP.get(name, 1):
        message = f"Invalid amount: in {name} it must be divisible by {STEP[name]}"
        raise Refusal(message, "invalid_charge_amount", "amount")
