<?php
// A shop's backend in PHP that uses only the client that openapi-generator generates.
declare(strict_types=1);

use OpenAPI\Client\{Api, ApiException, Configuration, Model, ObjectSerializer};

// A warning about the client's own code is an error. Warnings about the HTTP library are not.
set_error_handler(fn(int $level, string $words, string $file, int $line) => str_starts_with($file, __DIR__)
    ? throw new ErrorException($words, 0, $level, $file, $line)
    : true);
require 'GuzzleHttp/autoload.php';
spl_autoload_register(function (string $class): void {
    $path = __DIR__ . '/lib/' . str_replace('\\', '/', substr($class, strlen('OpenAPI\Client\\'))) . '.php';
    if (str_starts_with($class, 'OpenAPI\Client\\') && is_file($path)) {
        require $path;
    }
});

function connected(string $baseUrl, string $clientId, string $clientSecret): Configuration
{
    $configuration = (new Configuration())->setHost($baseUrl);
    $asked = ['grant_type' => 'client_credentials', 'client_id' => $clientId, 'client_secret' => $clientSecret];
    $token = (new Api\TokenApi(null, $configuration))->getToken(new Model\TokenRequest($asked));
    return $configuration->setAccessToken($token->getAccessToken());
}

function ordered(): Model\CheckoutRequest
{
    $item = new Model\ItemRequest(['item_ref' => 'standing', 'quantity' => 2, 'unit_price' => 4500, 'currency' => 'GBP']);
    $item->setName('Standing ticket – £45')->setCustomData(['event_id' => 'evt-881']);
    $order = new Model\CheckoutRequest(['total_amount' => 9000, 'currency' => 'GBP', 'items' => [$item]]);
    return $order->setMerchantOrderId('A-' . uniqid())->setMetadata(['basket' => '881'])
        ->setReturnUrl('https://shop.example/thanks')->setCancelUrl('https://shop.example/basket');
}

/** Create, pay and capture an order of two tickets. Return its id. */
function bought(Configuration $configuration): string
{
    $checkouts = new Api\CheckoutsApi(null, $configuration);
    $uuid = $checkouts->createCheckout(ordered(), uniqid('key-'))->getData()->getCheckoutUuid();
    $paid = (new Api\SandboxApi(null, $configuration))->sandboxPay($uuid, null, new Model\PayRequest());
    if ($paid->getData()->getMetadata()['basket'] !== '881') {
        throw new Exception('no metadata');
    }
    $checkouts->captureCheckout($uuid, null, null, new Model\CaptureRequest());
    return $uuid;
}

/** Refund the order, and wait until the refund has ended. Return all statuses that the order had. */
function refunded(Configuration $configuration, string $uuid): array
{
    $checkouts = new Api\CheckoutsApi(null, $configuration);
    $seen = [$checkouts->readCheckout($uuid)->getData()->getStatus()];
    $asked = new Model\RefundRequest(['merchant_refund_ref' => 'R-' . uniqid(), 'reason' => 'Show moved']);
    [, $status] = $checkouts->refundCheckoutAsyncWithHttpInfo($uuid, $asked)->wait();
    if ($status !== 204) {
        throw new Exception("refund: $status");
    }
    for ($attempt = 0; $attempt < 100; $attempt++) {
        $seen[] = $checkouts->readCheckout($uuid)->getData()->getStatus();
        if (end($seen) === 'refunded') {
            return array_values(array_unique($seen));
        }
        advance($configuration, $uuid);
        usleep(100_000);
    }
    throw new Exception('not refunded');
}

/** Let time pass. The call is refused while the refund is sent to the provider. */
function advance(Configuration $configuration, string $uuid): void
{
    try {
        (new Api\SandboxApi(null, $configuration))->sandboxAdvance($uuid, new Model\AdvanceRequest(['seconds' => 5]));
    } catch (ApiException $refused) {
        if ($refused->getCode() !== 409) {
            throw $refused;
        }
    }
}

function refusal(Configuration $configuration): string
{
    try {
        (new Api\CheckoutsApi(null, $configuration))->readCheckout('0193c2a1-7e44-7b0c-9d1f-5a6e0c41b2d8');
    } catch (ApiException $refused) {
        return $refused->getResponseObject()->getError()->getCode();
    }
    throw new Exception('not refused');
}

/** Return the ids of the paid orders in the event feed, and the types of the other events. */
function listed(Configuration $configuration): array
{
    $entries = (new Api\WebhooksApi(null, $configuration))->listEvents()->getData()->getEvents();
    $named = fn(Model\ListedEventEvent $event) =>
        $event->getType() === 'checkout.authorized' ? $event->getData()['checkout_uuid'] : $event->getType();
    return array_map(fn(Model\ListedEvent $entry) => $named($entry->getEvent()), $entries);
}

/** Handle an event as a webhook receiver does. Ignore events of an unknown type. */
function heard(string $body): string
{
    if (json_decode($body)->type !== 'checkout.authorized') {
        return 'ignored';
    }
    $event = ObjectSerializer::deserialize(json_decode($body), Model\CheckoutAuthorizedEvent::class, []);
    return "{$event->getData()->getCheckoutUuid()} {$event->getData()->getAmount()}";
}

[, $baseUrl, $clientId, $clientSecret, $event] = $argv;
$configuration = connected($baseUrl, $clientId, $clientSecret);
$webhooks = new Api\WebhooksApi(null, $configuration);
$seen = refunded($configuration, bought($configuration));
$wanted = $webhooks->readSubscription()->getData()->getEventTypes();
$told = array_map(fn($attempt) => $attempt->getEventType(), $webhooks->listDeliveryAttempts()->getData()->getDeliveries());
$said = ['seen' => $seen, 'refused' => refusal($configuration), 'wanted' => $wanted, 'told' => $told];
echo json_encode($said + ['listed' => listed($configuration), 'heard' => heard($event)]);
