"""The demo shop: a merchant's whole backend in one file, to try the service and to integrate by.

It knows nothing but the public API and webhooks/signing.py, which you may copy. The environment gives SHOP_PORT,
BASE_URL, SHOP_CLIENT_ID, SHOP_CLIENT_SECRET, and SHOP_STATE, the path of its SQLite file.
"""

import contextlib
import functools
import hmac
import html
import http.client
import http.server
import json
import os
import re
import secrets
import sqlite3
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from webhooks import signing

Json = dict[str, Any]

LONDON, FEE = "Europe/London", 175  # money is in minor units, here pence
SHOWS = [("Union Hall", "London", 21, 2250), ("The Boathouse", "Bristol", 23, 1950), ("Pier 9", "Hull", 28, 1800)]
STATE = """
CREATE TABLE IF NOT EXISTS secret (client_id TEXT PRIMARY KEY, secret TEXT);
CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, title TEXT, total INTEGER, placed_at TEXT,
                                   checkout_uuid TEXT, captured_at TEXT, fulfilled_at TEXT);
CREATE TABLE IF NOT EXISTS event (id TEXT PRIMARY KEY, type TEXT, checkout_uuid TEXT, received_at TEXT, done_at TEXT);
"""
HEADLINES = {
    "created": "Waiting for your payment", "expired": "This order has expired. Nothing was taken.",
    "authorized": "Paid. We are confirming your order.", "voided": "Not confirmed. Nothing was taken.",
    "captured": "Your tickets are ready", "refunding": "Your money is on its way back", "refunded": "Refunded",
}  # fmt: skip
