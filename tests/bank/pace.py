"""The bank's response times: BANK_PACE="0.8 3 0.01" is p50, p99 (seconds) and the share of lost answers."""

import os
import random
import time
from math import log

_P50, _P99, _LOST = (float(text) for text in os.environ.get("BANK_PACE", "0 0 0").split())
# The sigma of the lognormal distribution that has this p50 and p99.
_SPREAD = log(_P99 / _P50) / 2.326 if _P50 else 0.0


def take(began: float) -> bool:
    """Sleep for the rest of a call's response time. The call began at `began`.

    Returns False if the answer must be lost, although the bank has carried out the call.
    """
    if _P50:
        time.sleep(max(0.0, began + random.lognormvariate(log(_P50), _SPREAD) - time.monotonic()))
    return random.random() >= _LOST
