"""The webhook API's part of the API's document (rule api.document)."""

from config.lib.described import DescribedOperation, DescribedOperations, DescribedResponse
from webhooks.api import events, serializers, views

SHAPES = {
    "Subscription": "url event_types created_at updated_at",
    "NewSubscription": "url event_types created_at updated_at signing_secret",
    "RotatedSecret": "signing_secret previous_secret_expires_at?",
    "DeliveryAttempt": "event_id event_type attempt_number http_status? error_message? duration_ms? attempted_at status"
    " next_attempt_at? checkout_uuid?",
    "DeliveryLog": "deliveries next_cursor?",
    "EventFeed": "events next_cursor",
    "ListedEvent": "event delivery_status",
}

ENDPOINTS: DescribedOperations = {
    (views.OneSubscription, "POST"): DescribedOperation(
        "register_subscription",
        "Register or change the subscription",
        "A merchant has one subscription. The first call answers 201 with the `signing_secret`, which is shown "
        "this once; later calls change address and event types and keep the secret. Lost it? Rotate it.",
        {
            201: DescribedResponse(
                "The subscription is new. Keep its `signing_secret` now.", "NewSubscription"
            ),
            200: DescribedResponse(
                "The subscription has changed; its secret has not, and is not shown. Lost it? Rotate.",
                "Subscription",
            ),
        },
        takes=serializers.SubscriptionIn,
    ),
    (views.OneSubscription, "GET"): DescribedOperation(
        "read_subscription",
        "Read the subscription",
        "Where your events go, and which. The secret is never shown again.",
        {200: DescribedResponse("The subscription.", "Subscription")},
        codes=("subscription_not_found",),
    ),
    (views.OneSubscription, "DELETE"): DescribedOperation(
        "end_subscription",
        "End the subscription",
        "No further delivery is sent; those that wait are parked. A new subscription gets a new secret.",
        {204: DescribedResponse("The subscription has ended.")},
        codes=("subscription_not_found",),
    ),
    (views.RotateSecret, "POST"): DescribedOperation(
        "rotate_signing_secret",
        "Rotate the signing secret",
        "For the next two hours every delivery is signed with the new secret and the previous one. A rotation whose "
        "answer was lost may be repeated: each previous secret signs until its own two hours are over, up to three at "
        "once, newest first. With `revoke_previous` all previous ones stop at once, and deliveries may fail until your "
        "server has the new one. The flag goes in the body or in the query.",
        {200: DescribedResponse("The new secret, shown this once.", "RotatedSecret")},
        takes=serializers.RotateIn,
        query=serializers.RotateQuery,
        codes=("subscription_not_found", "rotation_in_progress"),
    ),
    (views.Deliveries, "GET"): DescribedOperation(
        "list_delivery_attempts",
        "List delivery attempts",
        "One entry per attempt, newest first. An attempt that is under way is not in the list yet.",
        {200: DescribedResponse("One page of the delivery log.", "DeliveryLog")},
        query=serializers.DeliveriesQuery,
    ),
    (events.Events, "GET"): DescribedOperation(
        "list_events",
        "List events",
        "What we have told you, or would have, without a subscription too, in the order in which it was written, "
        "which is not always that of `created_at`. Begin with `created_after`, go on with `cursor`: keep "
        "`next_cursor`, which is always there, and you miss nothing. Give the filters again with it. A page that is "
        "not full is the last one for now. `webhook.test` is not in it.",
        {200: DescribedResponse("One page of the feed.", "EventFeed")},
        query=serializers.EventsQuery,
    ),
}
