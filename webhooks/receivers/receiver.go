// Verifies each webhook, captures the held checkout, and answers: go run receiver.go
// It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET
// and SIGNING_SECRETS (two secrets while you rotate). Set PORT for another port than 3000.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const orders = "/api/merchant/v1/checkouts"

type checkout struct {
	UUID             string `json:"checkout_uuid"`
	Status           string
	AuthorizedAt     string `json:"authorized_at"`
	CaptureBefore    string `json:"capture_before"`
	PendingOperation string `json:"pending_operation"`
}

// An answer has the fields that the receiver reads in the answers of the API.
type answer struct {
	status      int           // 0 if there was no answer
	wait        time.Duration // before another try
	AccessToken string        `json:"access_token"`
	Error       json.RawMessage
	Data        struct {
		Checkouts  []checkout
		NextCursor string `json:"next_cursor"`
	}
}

var (
	baseURL      = setting("CHECKOUT_BASE_URL")
	clientID     = setting("CHECKOUT_CLIENT_ID")
	clientSecret = setting("CHECKOUT_CLIENT_SECRET")
	secrets      = strings.Fields(setting("SIGNING_SECRETS")) // without empty ones: anyone can sign with one
	isTime       = regexp.MustCompile(`^[0-9]{1,12}$`).MatchString
	now          = time.Now             // a variable, so that a test can stop the clock
	started      = ago(2 * time.Minute) // a hold lasts two minutes, so the first catch-up misses none
	token        atomic.Value           // of type string
)

func setting(name string) string {
	if strings.TrimSpace(os.Getenv(name)) == "" {
		log.Fatalf("Set %s (see Quick start and Receivers in the documentation).", name)
	}
	return os.Getenv(name)
}

func ago(age time.Duration) string {
	return now().Add(-age).UTC().Format("2006-01-02T15:04:05Z")
}

// verify returns the reason for a 400, or an empty string: the sender knows a secret.
func verify(header string, body []byte) string {
	given, isWhole := map[string][]string{}, true
	for _, entry := range strings.Split(header, ",") {
		name, value, hasValue := strings.Cut(entry, "=")
		given[name] = append(given[name], value)
		isWhole = isWhole && hasValue
	}
	if !isWhole || len(given["t"]) != 1 || !isTime(given["t"][0]) || len(given["v1"]) == 0 {
		return "malformed_header"
	}
	sent, _ := strconv.ParseInt(given["t"][0], 10, 64)
	age := now().Unix() - sent
	var object map[string]json.RawMessage
	switch {
	case !isSigned(given["v1"], given["t"][0]+"."+string(body)):
		return "no_matching_signature"
	case age < -300 || age > 300:
		return "timestamp_out_of_tolerance"
	case !utf8.Valid(body) || json.Unmarshal(body, &object) != nil || object == nil:
		return "invalid_json"
	}
	return ""
}

// isSigned returns whether one of the signatures is made with one of the secrets.
func isSigned(signatures []string, message string) (isOne bool) {
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		io.WriteString(mac, message)
		for _, signature := range signatures {
			isOne = hmac.Equal([]byte(signature), []byte(fmt.Sprintf("%x", mac.Sum(nil)))) || isOne
		}
	}
	return isOne
}

// send returns the answer to a request, which takes at most as long as the limit.
func send(method, path, body, bearer string, limit time.Duration) answer {
	got := answer{wait: time.Second}
	request, err := http.NewRequest(method, baseURL+path, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	client := http.Client{Timeout: limit}
	response, err := client.Do(request)
	if err != nil {
		log.Print(err)
		return got
	}
	defer response.Body.Close()
	if json.NewDecoder(response.Body).Decode(&got) == nil {
		got.status = response.StatusCode
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		got.wait = time.Duration(seconds) * time.Second
	}
	if got.status != 200 {
		log.Printf("%s %s was answered %s %s", method, path, response.Status, got.Error)
	}
	return got
}

// call sends a request with the token, which is reused until the service refuses it.
func call(method, path, body string, limit time.Duration) answer {
	bearer, _ := token.Load().(string)
	if bearer == "" {
		grant := `{"grant_type": "client_credentials", "client_id": %q, "client_secret": %q}`
		grant = fmt.Sprintf(grant, clientID, clientSecret)
		bearer = send("POST", "/oauth/token", grant, "", 3*time.Second).AccessToken
	}
	got := send(method, path, body, bearer, limit)
	if got.status == 401 {
		bearer = ""
	}
	token.Store(bearer)
	return got
}

// capture fulfils a checkout if its money has moved. It returns an error if it does not know this in time.
func capture(uuid string, limit time.Duration) error {
	for end := time.Now().Add(limit); ; {
		got := call("POST", orders+"/"+uuid+"/capture", "{}", time.Until(end))
		switch {
		case got.status == 200:
			return fulfil(uuid)
		case strings.Contains(string(got.Error), `"not_capturable"`):
			return nil // the hold is over
		case time.Until(end) < got.wait+time.Second:
			return fmt.Errorf("%s is not captured yet", uuid)
		}
		time.Sleep(got.wait) // a second try is safe: the service captures only once
	}
}

// fulfil marks the order as paid. A second call for the same order changes nothing. Do slow work elsewhere.
func fulfil(uuid string) error {
	return os.WriteFile("paid/"+uuid, nil, 0o644)
}

func list(query string) ([]checkout, string) {
	page := call("GET", orders+query, "", 8*time.Second).Data // empty if there was no answer
	return page.Checkouts, page.NextCursor
}

// catchUp captures held checkouts, then fulfils those captured since the cursor. Store the cursor with your orders.
func catchUp() error {
	held, cursor := list("?status=authorized&limit=200")
	for cursor != "" { // the newest come first, so the hold that ends soonest is on the last page
		var more []checkout
		more, cursor = list("?status=authorized&limit=200&cursor=" + cursor)
		held = append(held, more...)
	}
	sort.Slice(held, func(i, j int) bool { return held[i].CaptureBefore < held[j].CaptureBefore })
	for _, one := range held {
		isAtWork := one.PendingOperation != "" || one.AuthorizedAt > ago(10*time.Second) // its webhook captures it
		if !isAtWork {
			capture(one.UUID, 8*time.Second) // if this fails, the next round tries again
		}
	}
	for {
		changed, next := list("?sort=updated_at&limit=200&" + position())
		if err := fulfilCaptured(changed); err != nil {
			return err
		}
		if next == "" {
			return errors.New("no list of changes")
		}
		if err := os.WriteFile("cursor", []byte(next), 0o644); err != nil || len(changed) < 200 {
			return err
		}
	}
}

func position() string {
	if cursor, err := os.ReadFile("cursor"); err == nil {
		return "cursor=" + string(cursor)
	}
	return "updated_after=" + started
}

func fulfilCaptured(changed []checkout) error {
	for _, one := range changed {
		if one.Status != "captured" {
			continue
		}
		if err := fulfil(one.UUID); err != nil {
			return err
		}
	}
	return nil
}

// process returns an error if the event must be sent again. A webhook must be answered within 15 s.
func process(body []byte) error {
	var event struct {
		ID, Type string
		Data     checkout
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return err
	}
	marker := "seen/event-" + event.ID
	if _, err := os.Stat(marker); err == nil {
		return nil // two deliveries can pass this check at the same time, which does no harm
	}
	if event.Type == "checkout.authorized" {
		if err := capture(event.Data.UUID, 11*time.Second); err != nil {
			return err
		}
	}
	return os.WriteFile(marker, nil, 0o644)
}

func receive(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(io.LimitReader(request.Body, 1<<20))
	if err != nil {
		panic(http.ErrAbortHandler) // the body is incomplete: close the connection without an answer
	}
	status, words := 200, "ok"
	if reason := verify(request.Header.Get("X-Service-Signature"), body); reason != "" {
		status, words = 400, reason // the sender is unknown: do not store or log the body
	} else if err := process(body); err != nil {
		log.Print(err)
		status, words = 500, "send it again" // a 4xx would end the retries, and the hold would be lost
	}
	log.Printf("a delivery is answered %d %s", status, words)
	response.WriteHeader(status)
	io.WriteString(response, words)
}

func main() {
	for _, table := range []string{"seen", "paid"} { // in your service, use tables, each with a unique column
		os.MkdirAll(table, 0o755)
	}
	go func() {
		for range time.Tick(5 * time.Second) {
			if err := catchUp(); err != nil {
				log.Print("could not catch up: ", err)
			}
		}
	}()
	port := os.Getenv("PORT")
	if port == "" {
		port = "3000"
	}
	log.Print("listening on http://127.0.0.1:" + port)
	server := http.Server{Addr: "127.0.0.1:" + port, Handler: http.HandlerFunc(receive), ReadTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
