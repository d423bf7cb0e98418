<?php // Verifies each webhook, captures the held checkout, and answers: php -S 127.0.0.1:3000 receiver.php
// It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET
// and SIGNING_SECRETS (two secrets while you rotate).
// Also run, with the same variables and in the same folder: php receiver.php
// It captures the checkouts whose webhooks did not arrive.

const NEEDED = ['CHECKOUT_BASE_URL', 'CHECKOUT_CLIENT_ID', 'CHECKOUT_CLIENT_SECRET', 'SIGNING_SECRETS'];
const ORDERS = '/api/merchant/v1/checkouts';

class Refused extends Exception {} // the answer is 400, and the message is one of four reasons

function verify(string $header, string $body, array $secrets): stdClass
{
    $given = ['t' => [], 'v1' => []];
    foreach (explode(',', $header) as $entry) {
        [$scheme, $value] = explode('=', $entry, 2) + [1 => null];
        if ($value === null) throw new Refused('malformed_header');
        $given[$scheme][] = $value;
    }
    $isWhole = count($given['t']) === 1 && $given['v1'];
    if (!$isWhole || !preg_match('/^[0-9]{1,12}$/D', $given['t'][0])) throw new Refused('malformed_header');
    $matches = 0;
    foreach ($secrets as $secret) {
        $wanted = hash_hmac('sha256', "{$given['t'][0]}.$body", $secret);
        foreach ($given['v1'] as $v1) $matches += hash_equals($wanted, $v1);
    }
    if (!$matches) throw new Refused('no_matching_signature');
    if (abs(time() - (int) $given['t'][0]) > 300) throw new Refused('timestamp_out_of_tolerance');
    $event = json_decode($body);
    return $event instanceof stdClass ? $event : throw new Refused('invalid_json');
}

/** Return the status, the answer and the seconds to wait; the status 0 and null if there was no answer. */
function call(string $method, string $path, ?array $body, float $seconds, string ...$headers): array
{
    $asked = ['method' => $method, 'header' => ['Content-Type: application/json', ...$headers], 'ignore_errors' => true];
    if ($body !== null) $asked['content'] = json_encode((object) $body);
    $context = stream_context_create(['http' => $asked + ['timeout' => $seconds]]);
    $stream = @fopen(getenv('CHECKOUT_BASE_URL') . $path, 'r', false, $context);
    if (!$stream) return [0, null, 1];
    $head = stream_get_meta_data($stream)['wrapper_data'];
    $wait = preg_grep('/^Retry-After: *[0-9]+$/i', $head);
    return [(int) substr($head[0], 9, 3), json_decode(stream_get_contents($stream)), $wait ? (int) substr(end($wait), 12) : 1];
}

function authorized(string $method, string $path, ?array $body = null, float $seconds = 8): array
{
    $kept = @json_decode(file_get_contents('token.json')); // reused until it expires; in your service, use a cache
    if (($kept->until ?? 0) < time()) {
        $client = ['client_id' => getenv('CHECKOUT_CLIENT_ID'), 'client_secret' => getenv('CHECKOUT_CLIENT_SECRET')];
        [$status, $kept, $wait] = call('POST', '/oauth/token', ['grant_type' => 'client_credentials', ...$client], 3);
        if ($status !== 200) return [$status, $kept, $wait];
        $kept->until = time() + $kept->expires_in - 60;
        umask(0077);
        file_put_contents('token.json', json_encode($kept));
    }
    $answer = call($method, $path, $body, $seconds, "Authorization: Bearer $kept->access_token");
    if ($answer[0] === 401) @unlink('token.json');
    if ($answer[0] !== 200) error_log("$method $path answered $answer[0] " . ($answer[1]->error->code ?? ''));
    return $answer;
}

/** Return true (captured), false (the hold is over) or null (not known yet), and the seconds to wait. */
function tryCapture(string $checkout, float $seconds = 8): array
{
    [$status, $answer, $wait] = authorized('POST', ORDERS . "/$checkout/capture", [], $seconds);
    $isOver = ($answer->error->code ?? '') === 'not_capturable';
    return [$status === 200 ? true : ($isOver ? false : null), $wait];
}

/** Return whether the money has moved; throw if it is not known. Fits into a webhook's 15 s, also if a capture takes 8 s. */
function capture(string $checkout): bool
{
    for ($end = hrtime(true) / 1e9 + 12; ; sleep($wait)) { // a second try is safe: the service captures only once
        [$hasMoved, $wait] = tryCapture($checkout, min(8, $end - hrtime(true) / 1e9));
        if ($hasMoved !== null) return $hasMoved;
        if (hrtime(true) / 1e9 + $wait + 1 > $end) throw new Exception("$checkout is not captured yet");
    }
}

/** Do the slow work elsewhere. Here: mark the order as paid, once, however often this is called. */
function fulfil(string $checkout): void
{
    touch("paid/$checkout");
}

/** Capture what is still held, then fulfil orders captured since the cursor (keep it with your orders). */
function catchUp(string $started): void
{
    for ($held = [], $more = ''; $more !== null; ) { // newest first, so the hold that ends soonest is on the last page
        [, $page] = authorized('GET', ORDERS . "?status=authorized&limit=200$more");
        $held = [...$held, ...$page->data->checkouts ?? []];
        $more = isset($page->data->next_cursor) ? "&cursor={$page->data->next_cursor}" : null;
    }
    usort($held, fn($one, $other) => $one->capture_before <=> $other->capture_before);
    foreach ($held as $checkout) {
        $isAtWork = isset($checkout->pending_operation) || $checkout->authorized_at > ago(10); // its webhook captures it
        if (!$isAtWork && tryCapture($checkout->checkout_uuid)[0]) fulfil($checkout->checkout_uuid);
    }
    do {
        $from = file_exists('cursor') ? 'cursor=' . file_get_contents('cursor') : "updated_after=$started";
        [, $page] = authorized('GET', ORDERS . "?sort=updated_at&limit=200&$from");
        if (!isset($page->data)) return;
        foreach ($page->data->checkouts as $checkout) {
            if ($checkout->status === 'captured') fulfil($checkout->checkout_uuid);
        }
        file_put_contents('cursor', $page->data->next_cursor);
    } while (count($page->data->checkouts) === 200);
}

function ago(int $seconds): string
{
    return gmdate('Y-m-d\TH:i:s\Z', time() - $seconds);
}

function answer(int $status, string $words): void
{
    error_log("a delivery is answered $status $words");
    http_response_code($status);
    echo $words;
}

foreach (['seen', 'paid'] as $table) is_dir($table) || @mkdir($table); // in your service, use tables with a unique column
foreach (NEEDED as $name) {
    if (trim((string) getenv($name)) !== '') continue;
    error_log("Set $name (see Quick start and Receivers in the documentation).");
    http_response_code(500); // a 4xx would end the retries, and the hold would be lost
    exit(1);
}
if (PHP_SAPI === 'cli') {
    echo "catching up every five seconds\n";
    for ($started = ago(120); ; catchUp($started)) sleep(5); // a hold lasts two minutes, so the first catch-up misses none
}
try {
    $signature = $_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? '';
    $body = file_get_contents('php://input', false, null, 0, 1 << 20);
    $secrets = preg_split('/\s+/', getenv('SIGNING_SECRETS'), -1, PREG_SPLIT_NO_EMPTY); // without empty ones: anyone can sign with one
    $event = verify($signature, $body, $secrets);
    $seen = 'seen/' . ($event->id ?? '-');
    if (!file_exists($seen)) { // two deliveries can pass this check at the same time, which does no harm
        if (($event->type ?? '') === 'checkout.authorized' && capture($event->data->checkout_uuid)) {
            fulfil($event->data->checkout_uuid);
        }
        touch($seen);
    }
    answer(200, 'ok');
} catch (Refused $reason) { // the sender is unknown: do not store or log the body
    answer(400, $reason->getMessage());
} catch (Throwable $failure) {
    error_log($failure->getMessage());
    answer(500, 'send it again'); // a 4xx would end the retries, and the hold would be lost
}
