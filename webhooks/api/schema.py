"""The part of the OpenAPI document about the webhook API (rule api.document)."""

from config.lib.api.described import DescribedOperation, DescribedOperations, DescribedResponse
from webhooks.api import events, responses, serializers, views

ENDPOINTS: DescribedOperations = {
    (views.OneSubscription, "POST"): DescribedOperation(
        "register_subscription",
        "Register or change the subscription",
        "A merchant has one subscription. The first call returns 201 with the `signing_secret`, which is "
        "shown only this once. Later calls change the address and the event types and keep the secret. If "
        "you have lost the secret, rotate it.",
        {
            201: DescribedResponse(
                "The subscription is new. Store its `signing_secret` now.", responses.CreatedSubscriptionOut
            ),
            200: DescribedResponse(
                "The subscription has changed. Its secret is the same and is not shown. If you lost it, "
                "rotate.",
                responses.SubscriptionOut,
            ),
        },
        body=serializers.SubscriptionIn,
    ),
    (views.OneSubscription, "GET"): DescribedOperation(
        "read_subscription",
        "Read the subscription",
        "Returns the URL of your endpoint and the event types that it receives. It never returns the secret.",
        {200: DescribedResponse("The subscription.", responses.SubscriptionOut)},
        codes=("subscription_not_found",),
    ),
    (views.OneSubscription, "DELETE"): DescribedOperation(
        "end_subscription",
        "End the subscription",
        "No further delivery is sent, and waiting deliveries are parked. A new subscription gets a new "
        "secret.",
        {204: DescribedResponse("The subscription has ended.")},
        codes=("subscription_not_found",),
    ),
    (views.RotateSecret, "POST"): DescribedOperation(
        "rotate_signing_secret",
        "Rotate the signing secret",
        "For the next two hours, the new and the previous secret sign every delivery. If the response was "
        "lost, you can repeat the rotation: each previous secret signs until its own two hours are over. Up "
        "to three secrets sign at once, newest first. With `revoke_previous`, all previous secrets stop at "
        "once, and deliveries can fail until your server has the new one. Send the flag in the body or in "
        "the query.",
        {200: DescribedResponse("The new secret, shown only this once.", responses.RotatedSecretOut)},
        body=serializers.RotateIn,
        query=serializers.RotateQuery,
        codes=("subscription_not_found", "rotation_in_progress"),
    ),
    (views.Deliveries, "GET"): DescribedOperation(
        "list_delivery_attempts",
        "List delivery attempts",
        "One entry per attempt, newest first. An attempt in progress is not in the list yet.",
        {200: DescribedResponse("One page of the delivery log.", responses.DeliveryLogOut)},
        query=serializers.DeliveriesQuery,
    ),
    (events.Events, "GET"): DescribedOperation(
        "list_events",
        "List events",
        "All your events, with or without a subscription. They are in the order in which they were written, "
        "which is not always the order of `created_at`. Begin with `created_after` and continue with "
        "`cursor`. `next_cursor` is always present. Store it, so that you miss no event. Send the same "
        "filters with it. A page with fewer entries than `limit` is the last page for now. `webhook.test` "
        "is not in the list.",
        {200: DescribedResponse("One page of the feed.", responses.EventFeedOut)},
        query=serializers.EventsQuery,
    ),
}
