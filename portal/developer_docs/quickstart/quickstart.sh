#!/usr/bin/env bash
# Makes, pays, captures and refunds an order: bash quickstart.sh
# It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET.
set -euo pipefail
for name in CHECKOUT_BASE_URL CHECKOUT_CLIENT_ID CHECKOUT_CLIENT_SECRET; do
  [ -n "${!name:-}" ] && continue
  echo "Set $name (see Quick start in the documentation)." >&2
  exit 1
done
orders=/api/merchant/v1/checkouts
auth="Accept: application/json"

# Put the answer into $answer. If the call is refused, end with the reason.
call() { # method, path, more headers; reads the body from standard input
  local method=$1 path=$2
  shift 2
  answer=$(curl -sS --fail-with-body -X "$method" "$CHECKOUT_BASE_URL$path" \
    -H "$auth" -H 'Content-Type: application/json' "$@" --data-binary @-) ||
    { echo "$answer" >&2; exit 1; }
}
pick() { grep -o "\"$1\": *\"[^\"]*\"" <<<"$answer" | head -1 | cut -d'"' -f4; }

# A token is valid for an hour: use it for all calls.
call POST /oauth/token <<JSON
{"grant_type": "client_credentials",
 "client_id": "$CHECKOUT_CLIENT_ID", "client_secret": "$CHECKOUT_CLIENT_SECRET"}
JSON
auth="Authorization: Bearer $(pick access_token)"

# An order. The key prevents a second order if you repeat the call.
order_id="A-$(date +%s)-$RANDOM"
call POST $orders -H "Idempotency-Key: $order_id" <<JSON
{"merchant_order_id": "$order_id", "total_amount": 2250, "currency": "GBP",
 "items": [{"item_ref": "standing", "name": "Standing ticket",
   "quantity": 1, "unit_price": 2250, "currency": "GBP"}],
 "return_url": "https://shop.example/thanks",
 "cancel_url": "https://shop.example/basket"}
JSON
uuid=$(pick checkout_uuid)
echo "$(pick status) $(pick checkout_url)" # send your customer there

# The customer pays. In the sandbox, this call pays for them.
# Or open the address and pay with 4242 4242 4242 4242.
call POST "/api/sandbox/v1/checkouts/$uuid/pay" <<<'{}'
echo "$(pick status) until $(pick capture_before)" # capture by then

# Capture: after this answer the money has moved. Now fulfil the order.
call POST "$orders/$uuid/capture" <<<'{}'
pick status

# Refund: accepted at once, settled when the provider confirms it.
call POST "$orders/$uuid/refund" <<<"{\"merchant_refund_ref\": \"R-$order_id\"}"
while call GET "$orders/$uuid" </dev/null && [ "$(pick status)" = refunding ]; do
  sleep 1
done
refunded=$(grep -o '"refunded_amount": *[0-9]*' <<<"$answer" | grep -o '[0-9]*$')
echo "$(pick status) $refunded"
