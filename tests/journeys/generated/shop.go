// A shop's backend in Go that uses only the client that openapi-generator generates.
package main

import (
	"checkout"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"
)

type report struct {
	Seen    []string `json:"seen"`
	Refused string   `json:"refused"`
	Wanted  []string `json:"wanted"`
	Told    []string `json:"told"`
	Listed  []string `json:"listed"`
	Heard   string   `json:"heard"`
}

var background = context.Background()

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func connected(baseURL, clientID, clientSecret string) *checkout.APIClient {
	configuration := checkout.NewConfiguration()
	configuration.Servers = checkout.ServerConfigurations{{URL: baseURL}}
	client := checkout.NewAPIClient(configuration)
	asked := checkout.NewTokenRequest("client_credentials")
	asked.SetClientId(clientID)
	asked.SetClientSecret(clientSecret)
	token, _, err := client.TokenAPI.GetToken(background).TokenRequest(*asked).Execute()
	must(err)
	configuration.AddDefaultHeader("Authorization", "Bearer "+token.AccessToken)
	return client
}

func unique(prefix string) string {
	return fmt.Sprintf("%s-%d", prefix, time.Now().UnixNano())
}

// Create, pay and capture an order of two tickets. Return its id.
func bought(client *checkout.APIClient) string {
	item := checkout.NewItemRequest("standing", "Standing ticket – £45", 2, 4500, "GBP")
	item.SetCustomData(map[string]interface{}{"event_id": "evt-881"})
	order := checkout.NewCheckoutRequest(unique("A"), 9000, "GBP",
		"https://shop.example/thanks", "https://shop.example/basket", []checkout.ItemRequest{*item})
	order.SetMetadata(map[string]string{"basket": "881"})
	created, _, err := client.CheckoutsAPI.CreateCheckout(background).
		CheckoutRequest(*order).IdempotencyKey(unique("key")).Execute()
	must(err)
	uuid := created.Data.CheckoutUuid
	paid, _, err := client.SandboxAPI.SandboxPay(background, uuid).PayRequest(*checkout.NewPayRequest()).Execute()
	must(err)
	if paid.Data.Metadata["basket"] != "881" {
		log.Panic("no metadata")
	}
	_, _, err = client.CheckoutsAPI.CaptureCheckout(background, uuid).
		CaptureRequest(*checkout.NewCaptureRequest()).Execute()
	must(err)
	return uuid
}

// Refund the order, and wait until the refund has ended. Return all statuses that the order had.
func refunded(client *checkout.APIClient, uuid string) []string {
	before, _, err := client.CheckoutsAPI.ReadCheckout(background, uuid).Execute()
	must(err)
	seen := []string{before.Data.Status}
	asked := checkout.NewRefundRequest(unique("R"))
	asked.SetReason("Show moved")
	_, answer, err := client.CheckoutsAPI.RefundCheckout(background, uuid).RefundRequest(*asked).Execute()
	must(err)
	if answer.StatusCode != 204 {
		log.Panic(answer.Status)
	}
	for attempt := 0; attempt < 100; attempt++ {
		read, _, err := client.CheckoutsAPI.ReadCheckout(background, uuid).Execute()
		must(err)
		if seen[len(seen)-1] != read.Data.Status {
			seen = append(seen, read.Data.Status)
		}
		if read.Data.Status == "refunded" {
			return seen
		}
		advance(client, uuid)
		time.Sleep(100 * time.Millisecond)
	}
	log.Panicf("not refunded: %v", seen)
	return nil
}

// Let time pass. The call is refused while the refund is sent to the provider.
func advance(client *checkout.APIClient, uuid string) {
	asked := checkout.NewAdvanceRequest(5)
	_, answer, err := client.SandboxAPI.SandboxAdvance(background, uuid).AdvanceRequest(*asked).Execute()
	if answer == nil || answer.StatusCode != 409 {
		must(err)
	}
}

func refusal(client *checkout.APIClient) string {
	_, _, err := client.CheckoutsAPI.ReadCheckout(background, "0193c2a1-7e44-7b0c-9d1f-5a6e0c41b2d8").Execute()
	var refused *checkout.GenericOpenAPIError
	if !errors.As(err, &refused) {
		log.Panic(err)
	}
	return refused.Model().(checkout.ErrorEnvelope).Error.Code
}

// Return the ids of the paid orders in the event feed, and the types of the other events.
func listed(client *checkout.APIClient) (found []string) {
	feed, _, err := client.WebhooksAPI.ListEvents(background).Execute()
	must(err)
	for _, entry := range feed.Data.Events {
		paid, other := entry.Event.CheckoutAuthorizedEvent, entry.Event.OtherEvent
		switch {
		case paid != nil && paid.Type == "checkout.authorized":
			found = append(found, paid.Data.CheckoutUuid)
		case paid != nil:
			found = append(found, paid.Type)
		case other != nil:
			found = append(found, other.Type)
		}
	}
	return found
}

// Handle an event as a webhook receiver does. Ignore events of an unknown type.
func heard(body string) string {
	var event checkout.Event
	must(json.Unmarshal([]byte(body), &event))
	if paid := event.CheckoutAuthorizedEvent; paid != nil {
		return fmt.Sprintf("%s %d", paid.Data.CheckoutUuid, paid.Data.Amount)
	}
	return "ignored"
}

func main() {
	client := connected(os.Args[1], os.Args[2], os.Args[3])
	uuid := bought(client)
	said := report{Seen: refunded(client, uuid), Refused: refusal(client), Listed: listed(client), Heard: heard(os.Args[4])}
	subscription, _, err := client.WebhooksAPI.ReadSubscription(background).Execute()
	must(err)
	said.Wanted = subscription.Data.EventTypes
	attempts, _, err := client.WebhooksAPI.ListDeliveryAttempts(background).Execute()
	must(err)
	for _, attempt := range attempts.Data.Deliveries {
		said.Told = append(said.Told, attempt.EventType)
	}
	must(json.NewEncoder(os.Stdout).Encode(said))
}
