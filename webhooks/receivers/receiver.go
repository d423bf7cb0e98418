// Verifies each webhook, captures the held checkout, and answers: go run receiver.go
// It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET
// and SIGNING_SECRETS (two secrets while you rotate). Set PORT for another port than 3000.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
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
	"sync"
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

type event struct {
	ID, Type string
	Data     checkout
}

type answer struct {
	status int           // 0 if there was no answer
	wait   time.Duration // before another try
	text   []byte
}

var (
	baseURL      = setting("CHECKOUT_BASE_URL")
	clientID     = setting("CHECKOUT_CLIENT_ID")
	clientSecret = setting("CHECKOUT_CLIENT_SECRET")
	secrets      = strings.Fields(setting("SIGNING_SECRETS")) // without empty ones: anyone can sign with one
	isTime       = regexp.MustCompile(`^[0-9]{1,12}$`).MatchString
	now          = time.Now             // a variable, so that a test can stop the clock
	started      = ago(2 * time.Minute) // a hold lasts two minutes, so the first catch-up misses none
	token        struct {
		sync.Mutex
		AccessToken string        `json:"access_token"`
		ExpiresIn   time.Duration `json:"expires_in"` // in seconds
		until       time.Time
	}
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
	times, signatures := given["t"], given["v1"]
	if !isWhole || len(times) != 1 || !isTime(times[0]) || len(signatures) == 0 {
		return "malformed_header"
	}
	matches := 0
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%s.%s", times[0], body)
		expected := []byte(fmt.Sprintf("%x", mac.Sum(nil)))
		for _, signature := range signatures {
			matches += subtle.ConstantTimeCompare([]byte(signature), expected)
		}
	}
	sent, _ := strconv.ParseInt(times[0], 10, 64)
	switch age := now().Unix() - sent; {
	case matches == 0:
		return "no_matching_signature"
	case age < -300 || age > 300:
		return "timestamp_out_of_tolerance"
	case !isObject(body):
		return "invalid_json"
	}
	return ""
}

func isObject(body []byte) bool {
	var fields map[string]json.RawMessage
	return utf8.Valid(body) && json.Unmarshal(body, &fields) == nil && fields != nil
}

func call(ctx context.Context, method, path, body, bearer string) answer {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, baseURL+path, strings.NewReader(body))
	if err != nil {
		return answer{0, time.Second, []byte(err.Error())}
	}
	request.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{0, time.Second, []byte(err.Error())}
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil {
		seconds = 1
	}
	return answer{response.StatusCode, time.Duration(seconds) * time.Second, text}
}

// bearer returns the current token. A token is reused until shortly before it expires.
func bearer(ctx context.Context) string {
	token.Lock()
	defer token.Unlock()
	if now().Before(token.until) {
		return token.AccessToken
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	grant := map[string]string{"grant_type": "client_credentials", "client_id": clientID, "client_secret": clientSecret}
	body, _ := json.Marshal(grant)
	got := call(ctx, "POST", "/oauth/token", string(body), "")
	if got.status == 200 && json.Unmarshal(got.text, &token) == nil {
		token.until = now().Add((token.ExpiresIn - 60) * time.Second)
	}
	return token.AccessToken
}

func authorized(ctx context.Context, method, path, body string) answer {
	got := call(ctx, method, path, body, bearer(ctx))
	if got.status == 401 {
		token.Lock()
		token.until = time.Time{}
		token.Unlock()
	}
	if got.status != 200 {
		log.Printf("%s %s was answered %d %s", method, path, got.status, got.text)
	}
	return got
}

// tryCapture returns whether the money has moved, whether this is known, and how long to wait before another try.
func tryCapture(ctx context.Context, checkout string) (hasMoved, isKnown bool, wait time.Duration) {
	got := authorized(ctx, "POST", orders+"/"+checkout+"/capture", "{}")
	isOver := strings.Contains(string(got.text), `"not_capturable"`)
	return got.status == 200, got.status == 200 || isOver, got.wait
}

// capture returns whether the money has moved. It takes at most 12 s: a webhook must be answered within 15 s.
func capture(checkout string) (bool, error) {
	end := time.Now().Add(12 * time.Second)
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	for {
		hasMoved, isKnown, wait := tryCapture(ctx, checkout)
		if isKnown {
			return hasMoved, nil
		}
		if time.Until(end) < wait+time.Second {
			return false, fmt.Errorf("%s is not captured yet", checkout)
		}
		time.Sleep(wait) // a second try is safe: the service captures only once
	}
}

// fulfil marks the order as paid. A second call changes nothing. Do slow work elsewhere.
func fulfil(checkout string) error {
	return os.WriteFile("paid/"+checkout, nil, 0o644)
}

// list returns one page of checkouts, and the cursor of the next page.
func list(query string) ([]checkout, string, error) {
	var page struct {
		Data struct {
			Checkouts  []checkout
			NextCursor string `json:"next_cursor"`
		}
	}
	got := authorized(context.Background(), "GET", orders+query, "")
	if got.status != 200 {
		return nil, "", errors.New("the list of checkouts is missing")
	}
	err := json.Unmarshal(got.text, &page)
	return page.Data.Checkouts, page.Data.NextCursor, err
}

// catchUp captures held checkouts, then fulfils those captured since the cursor. Store the cursor with your orders.
func catchUp() error {
	held, next, err := list("?status=authorized&limit=200")
	for next != "" { // the newest come first, so the hold that ends soonest is on the last page
		var page []checkout
		page, next, err = list("?status=authorized&limit=200&cursor=" + next)
		held = append(held, page...)
	}
	if err != nil {
		return err
	}
	sort.Slice(held, func(i, j int) bool { return held[i].CaptureBefore < held[j].CaptureBefore })
	for _, one := range held {
		if one.PendingOperation != "" || one.AuthorizedAt > ago(10*time.Second) {
			continue // its webhook captures it
		}
		if hasMoved, _, _ := tryCapture(context.Background(), one.UUID); hasMoved {
			if err := fulfil(one.UUID); err != nil {
				return err
			}
		}
	}
	for {
		from := "updated_after=" + started
		if cursor, err := os.ReadFile("cursor"); err == nil {
			from = "cursor=" + string(cursor)
		}
		changed, next, err := list("?sort=updated_at&limit=200&" + from)
		if err != nil {
			return err
		}
		for _, one := range changed {
			if one.Status == "captured" {
				if err := fulfil(one.UUID); err != nil {
					return err
				}
			}
		}
		err = os.WriteFile("cursor", []byte(next), 0o644)
		if err != nil || len(changed) < 200 {
			return err
		}
	}
}

func process(body []byte) error {
	var sent event
	if err := json.Unmarshal(body, &sent); err != nil {
		return err
	}
	marker := "seen/event-" + sent.ID
	if _, err := os.Stat(marker); err == nil {
		return nil // two deliveries can pass this check at the same time, which does no harm
	}
	if sent.Type == "checkout.authorized" {
		hasMoved, err := capture(sent.Data.UUID)
		if err == nil && hasMoved {
			err = fulfil(sent.Data.UUID)
		}
		if err != nil {
			return err
		}
	}
	return os.WriteFile(marker, nil, 0o644)
}

func receive(response http.ResponseWriter, request *http.Request) {
	status, words := 200, "ok"
	body, _ := io.ReadAll(io.LimitReader(request.Body, 1<<20))
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
		if err := os.MkdirAll(table, 0o755); err != nil {
			log.Fatal(err)
		}
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
