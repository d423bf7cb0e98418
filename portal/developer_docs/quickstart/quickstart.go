// Makes, pays, captures and refunds an order: go run quickstart.go
// It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"
)

var headers = http.Header{"Content-Type": {"application/json"}}

// call returns the answer's JSON. If the call is refused, it ends with the reason.
func call(method, path, body string) (answer struct {
	Token string         `json:"access_token"`
	Data  map[string]any `json:"data"`
}) {
	url := os.Getenv("CHECKOUT_BASE_URL") + path
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header = headers
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		log.Fatal(response.Status, " ", string(text))
	}
	json.Unmarshal(text, &answer) // an accepted refund has no body
	return answer
}

func main() {
	log.SetFlags(0) // no time before a message
	for _, name := range []string{"BASE_URL", "CLIENT_ID", "CLIENT_SECRET"} {
		name = "CHECKOUT_" + name
		if os.Getenv(name) == "" {
			log.Fatalf("Set %s (see Quick start in the documentation).", name)
		}
	}

	// A token is valid for an hour: use it for all calls.
	id, secret := os.Getenv("CHECKOUT_CLIENT_ID"), os.Getenv("CHECKOUT_CLIENT_SECRET")
	grant := `{"grant_type": "client_credentials", "client_id": %q, "client_secret": %q}`
	token := call("POST", "/oauth/token", fmt.Sprintf(grant, id, secret)).Token
	headers.Set("Authorization", "Bearer "+token)

	// An order. The key prevents a second order if you repeat the call.
	orderID := fmt.Sprint("A-", time.Now().UnixNano())
	headers.Set("Idempotency-Key", orderID)
	order := `{"merchant_order_id": %q, "total_amount": 2250, "currency": "GBP",
		"items": [{"item_ref": "standing", "name": "Standing ticket",
			"quantity": 1, "unit_price": 2250, "currency": "GBP"}],
		"return_url": "https://shop.example/thanks",
		"cancel_url": "https://shop.example/basket"}`
	order = fmt.Sprintf(order, orderID)
	created := call("POST", "/api/merchant/v1/checkouts", order).Data
	fmt.Println(created["status"], created["checkout_url"]) // send your customer there
	checkout := fmt.Sprint("checkouts/", created["checkout_uuid"])
	headers.Del("Idempotency-Key") // the calls below can be repeated without a key

	// The customer pays. In the sandbox, this call pays for them.
	// Or open the address and pay with 4242 4242 4242 4242.
	paid := call("POST", "/api/sandbox/v1/"+checkout+"/pay", "{}").Data
	fmt.Println(paid["status"], "until", paid["capture_before"]) // capture by then

	// Capture: after this answer the money has moved. Now fulfil the order.
	checkout = "/api/merchant/v1/" + checkout
	fmt.Println(call("POST", checkout+"/capture", "{}").Data["status"])

	// Refund: accepted at once, settled when the provider confirms it.
	call("POST", checkout+"/refund", `{"merchant_refund_ref": "R-`+orderID+`"}`)
	read := call("GET", checkout, "").Data
	for ; read["status"] == "refunding"; read = call("GET", checkout, "").Data {
		time.Sleep(time.Second)
	}
	fmt.Println(read["status"], read["refunded_amount"])
}
