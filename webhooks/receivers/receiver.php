<?php // Verifies each webhook, captures what is held, answers: php -S 127.0.0.1:3000 receiver.php, with these variables set.
// CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET; SIGNING_SECRETS, two while you rotate.

class Refused extends Exception {} // answered with 400; the message is one of the four reasons

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

/** Return status and answer, 0 and null if there was none. */
function post(string $path, array $body, int $patience, string ...$headers): array
{
    $sent = ['Content-Type: application/json', ...$headers];
    $asked = ['method' => 'POST', 'header' => $sent, 'content' => json_encode((object) $body)];
    $context = stream_context_create(['http' => $asked + ['timeout' => $patience, 'ignore_errors' => true]]);
    $stream = @fopen(getenv('CHECKOUT_BASE_URL') . $path, 'r', false, $context);
    if (!$stream) return [0, null];
    $status = (int) substr(stream_get_meta_data($stream)['wrapper_data'][0], 9, 3);
    return [$status, json_decode(stream_get_contents($stream), true)];
}

function bearer(): string
{
    $kept = @json_decode(file_get_contents('token.json'), true); // for its hour; in your service: in its cache
    if (($kept['until'] ?? 0) < time()) {
        $client = ['client_id' => getenv('CHECKOUT_CLIENT_ID'), 'client_secret' => getenv('CHECKOUT_CLIENT_SECRET')];
        [, $kept] = post('/oauth/token', ['grant_type' => 'client_credentials', ...$client], 3);
        umask(0077);
        file_put_contents('token.json', json_encode($kept + ['until' => time() + ($kept['expires_in'] ?? 0) - 60]));
    }
    return "Authorization: Bearer {$kept['access_token']}";
}

/** Return whether the money has moved; false: the hold is over. Throws while that is not known. */
function capture(string $checkout): bool
{
    foreach ([8, 3] as $patience) { // a capture answers within 8 s, and all of it fits into a webhook's 15
        [$status, $answer] = post("/api/merchant/v1/checkouts/$checkout/capture", [], $patience, bearer());
        if ($status === 200) return true;
        if (($answer['error']['code'] ?? '') === 'not_capturable') return false;
        if ($status === 401) unlink('token.json');
        sleep(1); // then again: it takes nothing twice
    }
    throw new Exception("$checkout is not captured yet");
}

foreach (['seen', 'paid'] as $table) is_dir($table) || mkdir($table); // in your service: tables, each with a unique column
try {
    $signature = $_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? '';
    $body = file_get_contents('php://input', false, null, 0, 1 << 20);
    $event = verify($signature, $body, explode(' ', getenv('SIGNING_SECRETS')));
    $seen = 'seen/' . ($event->id ?? '-');
    if (!file_exists($seen)) { // two deliveries at once may do the same: it does no harm
        if (($event->type ?? '') === 'checkout.authorized' && capture($event->data->checkout_uuid)) {
            touch("paid/{$event->data->checkout_uuid}"); // fulfil, slowly, what is here
        }
        touch($seen);
    }
    echo 'ok';
} catch (Refused $reason) { // whoever sent it: the body is neither kept nor logged
    http_response_code(400);
    echo $reason->getMessage();
} catch (Throwable $failure) {
    error_log($failure->getMessage());
    http_response_code(500); // a 4xx would give the hold away
    echo 'send it again';
}
