// Makes, pays, captures and refunds an order: go run quickstart.go
// It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

type object = map[string]any

var headers = http.Header{"Content-Type": {"application/json"}}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// call returns the answer's JSON. If the call is refused, it ends with the reason.
func call(method, path string, body object) (answer object) {
	var content bytes.Buffer
	if body != nil {
		check(json.NewEncoder(&content).Encode(body))
	}
	request, err := http.NewRequest(method, os.Getenv("CHECKOUT_BASE_URL")+path, &content)
	check(err)
	request.Header = headers
	response, err := http.DefaultClient.Do(request)
	check(err)
	text, err := io.ReadAll(response.Body)
	check(err)
	if response.StatusCode >= 300 {
		log.Fatal(response.Status, " ", string(text))
	}
	check(json.Unmarshal(text, &answer))
	return answer
}

func main() {
	log.SetFlags(0) // no time before a message
	needed := []string{"CHECKOUT_BASE_URL", "CHECKOUT_CLIENT_ID", "CHECKOUT_CLIENT_SECRET"}
	for _, name := range needed {
		if os.Getenv(name) == "" {
			log.Fatalf("Set %s (see Quick start in the documentation).", name)
		}
	}

	// A token is valid for an hour: use it for all calls.
	id, secret := os.Getenv("CHECKOUT_CLIENT_ID"), os.Getenv("CHECKOUT_CLIENT_SECRET")
	grant := object{"grant_type": "client_credentials", "client_id": id, "client_secret": secret}
	token := call("POST", "/oauth/token", grant)["access_token"]
	headers.Set("Authorization", fmt.Sprint("Bearer ", token))

	// An order. The key prevents a second order if you repeat the call.
	orderID := fmt.Sprint("A-", time.Now().UnixNano())
	item := object{
		"item_ref": "standing", "name": "Standing ticket",
		"quantity": 1, "unit_price": 2250, "currency": "GBP",
	}
	order := object{
		"merchant_order_id": orderID, "total_amount": 2250, "currency": "GBP",
		"items":      []object{item},
		"return_url": "https://shop.example/thanks",
		"cancel_url": "https://shop.example/basket",
	}
	headers.Set("Idempotency-Key", orderID)
	created := call("POST", "/api/merchant/v1/checkouts", order)["data"].(object)
	headers.Del("Idempotency-Key") // the calls below can be repeated without a key
	uuid := created["checkout_uuid"].(string)
	checkout := "/api/merchant/v1/checkouts/" + uuid
	fmt.Println(created["status"], created["checkout_url"]) // send your customer there

	// The customer pays. In the sandbox, this call pays for them.
	// Or open the address and pay with 4242 4242 4242 4242.
	paid := call("POST", "/api/sandbox/v1/checkouts/"+uuid+"/pay", object{})["data"].(object)
	fmt.Println(paid["status"], "until", paid["capture_before"]) // capture by then

	// Capture: after this answer the money has moved. Now fulfil the order.
	fmt.Println(call("POST", checkout+"/capture", object{})["data"].(object)["status"])

	// Refund: accepted at once, settled a moment later.
	call("POST", checkout+"/refund", object{"merchant_refund_ref": "R-" + orderID})
	read := object{"status": "refunding"}
	for read["status"] == "refunding" {
		time.Sleep(time.Second)
		read = call("GET", checkout, nil)["data"].(object)
	}
	fmt.Println(read["status"], read["refunded_amount"])
}
