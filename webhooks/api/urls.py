from django.urls import path

from webhooks.api import events, views

urlpatterns = [
    path("webhooks/subscription", views.OneSubscription.as_view()),
    path("webhooks/secret/rotate", views.RotateSecret.as_view()),
    path("events", events.Events.as_view()),
    path("webhooks/deliveries", views.Deliveries.as_view()),
]
