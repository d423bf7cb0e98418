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

func setting(name string) string {
	if os.Getenv(name) == "" {
		log.Fatalf("Set %s (see Quick start in the documentation).", name)
	}
	return os.Getenv(name)
}

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
	request, err := http.NewRequest(method, setting("CHECKOUT_BASE_URL")+path, &content)
	check(err)
	request.Header = headers
	response, err := http.DefaultClient.Do(request)
	check(err)
	text, err := io.ReadAll(response.Body)
	check(err)
	if response.StatusCode >= 300 {
		log.Fatal(response.Status, " ", string(text))
	}
	if len(text) > 0 { // a refund is accepted without a body
		check(json.Unmarshal(text, &answer))
	}
	return answer
}

// data returns what call returns as data.
func data(method, path string, body object) object {
	return call(method, path, body)["data"].(object)
}

func main() {
	log.SetFlags(0) // no time before a message
	setting("CHECKOUT_BASE_URL")
	id, secret := setting("CHECKOUT_CLIENT_ID"), setting("CHECKOUT_CLIENT_SECRET")

	// A token is valid for an hour: use it for all calls.
	grant := object{"grant_type": "client_credentials", "client_id": id}
	grant["client_secret"] = secret
	token := call("POST", "/oauth/token", grant)["access_token"].(string)
	headers.Set("Authorization", "Bearer "+token)

	// An order. The key prevents a second order if you repeat the call.
	orderID := fmt.Sprint("A-", time.Now().UnixNano())
	item := object{"item_ref": "standing", "name": "Standing ticket",
		"quantity": 1, "unit_price": 2250, "currency": "GBP"}
	order := object{"merchant_order_id": orderID, "items": []object{item},
		"total_amount": 2250, "currency": "GBP",
		"return_url": "https://shop.example/thanks",
		"cancel_url": "https://shop.example/basket"}
	headers.Set("Idempotency-Key", orderID)
	created := data("POST", "/api/merchant/v1/checkouts", order)
	headers.Del("Idempotency-Key") // the calls below can be repeated without a key
	uuid := created["checkout_uuid"].(string)
	checkout := "/api/merchant/v1/checkouts/" + uuid
	fmt.Println(created["status"], created["checkout_url"]) // send your customer there

	// The customer pays. In the sandbox, this call pays for them.
	// Or open the address and pay with 4242 4242 4242 4242.
	paid := data("POST", "/api/sandbox/v1/checkouts/"+uuid+"/pay", object{})
	fmt.Println(paid["status"], "until", paid["capture_before"]) // capture by then

	// Capture: after this answer the money has moved. Now fulfil the order.
	fmt.Println(data("POST", checkout+"/capture", object{})["status"])

	// Refund: accepted at once, settled a moment later.
	call("POST", checkout+"/refund", object{"merchant_refund_ref": "R-" + orderID})
	read := data("GET", checkout, nil)
	for ; read["status"] == "refunding"; read = data("GET", checkout, nil) {
		time.Sleep(time.Second)
	}
	fmt.Println(read["status"], read["refunded_amount"])
}
