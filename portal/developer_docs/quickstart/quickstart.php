<?php // Makes, pays, captures and refunds an order: php quickstart.php
// It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET.

$needed = ['CHECKOUT_BASE_URL', 'CHECKOUT_CLIENT_ID', 'CHECKOUT_CLIENT_SECRET'];
foreach ($needed as $name) {
    if (getenv($name)) continue;
    fwrite(STDERR, "Set $name (see Quick start in the documentation).\n");
    exit(1);
}
$headers = ['Content-Type: application/json'];

/** Return the answer's JSON. If the call is refused, end with the reason. */
function call(string $method, string $path, ?array $body = null, string ...$more): array
{
    $asked = ['method' => $method, 'timeout' => 20, 'ignore_errors' => true];
    $asked['header'] = [...$GLOBALS['headers'], ...$more];
    if ($body !== null) $asked['content'] = json_encode($body ?: new stdClass());
    $context = stream_context_create(['http' => $asked]);
    $address = getenv('CHECKOUT_BASE_URL') . $path;
    $stream = fopen($address, 'r', false, $context) ?: exit(1);
    $status = (int) substr(stream_get_meta_data($stream)['wrapper_data'][0], 9, 3);
    $text = stream_get_contents($stream);
    if ($status < 300) return json_decode($text ?: '{}', true);
    fwrite(STDERR, "$status $text\n");
    exit(1);
}

// A token is valid for an hour: use it for all calls.
$token = call('POST', '/oauth/token', [
    'grant_type' => 'client_credentials',
    'client_id' => getenv('CHECKOUT_CLIENT_ID'),
    'client_secret' => getenv('CHECKOUT_CLIENT_SECRET'),
]);
$headers[] = "Authorization: Bearer {$token['access_token']}";

// An order. The key prevents a second order if you repeat the call.
$orderId = 'A-' . bin2hex(random_bytes(8));
$price = ['quantity' => 1, 'unit_price' => 2250, 'currency' => 'GBP'];
$order = [
    'merchant_order_id' => $orderId,
    'total_amount' => 2250,
    'currency' => 'GBP',
    'items' => [['item_ref' => 'standing', 'name' => 'Standing ticket', ...$price]],
    'return_url' => 'https://shop.example/thanks',
    'cancel_url' => 'https://shop.example/basket',
];
$key = "Idempotency-Key: $orderId";
$created = call('POST', '/api/merchant/v1/checkouts', $order, $key)['data'];
$uuid = $created['checkout_uuid'];
$checkout = "/api/merchant/v1/checkouts/$uuid";
echo "{$created['status']} {$created['checkout_url']}\n"; // send your customer there

// The customer pays. In the sandbox, this call pays for them.
// Or open the address and pay with 4242 4242 4242 4242.
$paid = call('POST', "/api/sandbox/v1/checkouts/$uuid/pay", [])['data'];
echo "{$paid['status']} until {$paid['capture_before']}\n"; // capture by then

// Capture: after this answer the money has moved. Now fulfil the order.
echo call('POST', "$checkout/capture", [])['data']['status'], "\n";

// Refund: accepted at once, settled when the provider confirms it.
call('POST', "$checkout/refund", ['merchant_refund_ref' => "R-$orderId"]);
while (($read = call('GET', $checkout)['data'])['status'] === 'refunding') sleep(1);
echo "{$read['status']} {$read['refunded_amount']}\n";
