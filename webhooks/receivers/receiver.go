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

type page struct {
	Checkouts  []checkout
	NextCursor string `json:"next_cursor"`
}

type answer struct {
	status int           // 0 if there was no answer
	wait   time.Duration // before another try
	text   string
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

// check panics if a step has failed.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// try does some work, and returns the reason if it panics.
func try(work func()) (failure any) {
	defer func() { failure = recover() }()
	work()
	return nil
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
		for _, signature := range signatures {
			matches += subtle.ConstantTimeCompare([]byte(signature), []byte(fmt.Sprintf("%x", mac.Sum(nil))))
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
	check(err)
	request.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{0, time.Second, err.Error()}
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil {
		seconds = 1
	}
	return answer{response.StatusCode, time.Duration(seconds) * time.Second, string(text)}
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
	if got.status == 200 && json.Unmarshal([]byte(got.text), &token) == nil {
		token.until = now().Add((token.ExpiresIn - 60) * time.Second)
	} else {
		log.Printf("no token: %d %s", got.status, got.text)
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

func requestCapture(ctx context.Context, checkout string) answer {
	return authorized(ctx, "POST", orders+"/"+checkout+"/capture", "{}")
}

// capture returns whether the money has moved. It takes at most 12 s: a webhook must be answered within 15 s.
func capture(checkout string) bool {
	end := time.Now().Add(12 * time.Second)
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	for {
		got := requestCapture(ctx, checkout)
		if got.status == 200 || strings.Contains(got.text, `"not_capturable"`) {
			return got.status == 200 // if it is not capturable, the hold is over
		}
		if time.Until(end) < got.wait+time.Second {
			panic(checkout + " is not captured yet")
		}
		time.Sleep(got.wait) // a second try is safe: the service captures only once
	}
}

// fulfil marks the order as paid. A second call for the same order changes nothing. Do slow work elsewhere.
func fulfil(checkout string) {
	check(os.WriteFile("paid/"+checkout, nil, 0o644))
}

func list(query string) page {
	var found struct{ Data page }
	got := authorized(context.Background(), "GET", orders+query, "")
	if got.status != 200 {
		panic(got.text)
	}
	check(json.Unmarshal([]byte(got.text), &found))
	return found.Data
}

// catchUp captures held checkouts, then fulfils those captured since the cursor. Store the cursor with your orders.
func catchUp() {
	found := list("?status=authorized&limit=200")
	held := found.Checkouts
	for found.NextCursor != "" { // the newest come first, so the hold that ends soonest is on the last page
		found = list("?status=authorized&limit=200&cursor=" + found.NextCursor)
		held = append(held, found.Checkouts...)
	}
	sort.Slice(held, func(i, j int) bool { return held[i].CaptureBefore < held[j].CaptureBefore })
	for _, one := range held {
		isAtWork := one.PendingOperation != "" || one.AuthorizedAt > ago(10*time.Second) // its webhook captures it
		if !isAtWork && requestCapture(context.Background(), one.UUID).status == 200 {
			fulfil(one.UUID)
		}
	}
	for isFull := true; isFull; isFull = len(found.Checkouts) == 200 {
		from := "updated_after=" + started
		if cursor, err := os.ReadFile("cursor"); err == nil {
			from = "cursor=" + string(cursor)
		}
		found = list("?sort=updated_at&limit=200&" + from)
		for _, one := range found.Checkouts {
			if one.Status == "captured" {
				fulfil(one.UUID)
			}
		}
		check(os.WriteFile("cursor", []byte(found.NextCursor), 0o644))
	}
}

func catchUpForEver() {
	for range time.Tick(5 * time.Second) {
		if failure := try(catchUp); failure != nil {
			log.Print("could not catch up: ", failure)
		}
	}
}

func process(body []byte) {
	var sent event
	check(json.Unmarshal(body, &sent))
	marker := "seen/event-" + sent.ID
	if _, err := os.Stat(marker); err == nil {
		return // two deliveries can pass this check at the same time, which does no harm
	}
	if sent.Type == "checkout.authorized" && capture(sent.Data.UUID) {
		fulfil(sent.Data.UUID)
	}
	check(os.WriteFile(marker, nil, 0o644))
}

func receive(response http.ResponseWriter, request *http.Request) {
	status, words := 200, "ok"
	body, err := io.ReadAll(io.LimitReader(request.Body, 1<<20))
	if err != nil {
		panic(http.ErrAbortHandler) // the body is incomplete: close the connection without an answer
	}
	if reason := verify(request.Header.Get("X-Service-Signature"), body); reason != "" {
		status, words = 400, reason // the sender is unknown: do not store or log the body
	} else if failure := try(func() { process(body) }); failure != nil {
		log.Print(failure)
		status, words = 500, "send it again" // a 4xx would end the retries, and the hold would be lost
	}
	log.Printf("a delivery is answered %d %s", status, words)
	response.WriteHeader(status)
	io.WriteString(response, words)
}

func main() {
	for _, table := range []string{"seen", "paid"} { // in your service, use tables, each with a unique column
		check(os.MkdirAll(table, 0o755))
	}
	go catchUpForEver()
	port := os.Getenv("PORT")
	if port == "" {
		port = "3000"
	}
	log.Print("listening on http://127.0.0.1:" + port)
	server := http.Server{Addr: "127.0.0.1:" + port, Handler: http.HandlerFunc(receive), ReadTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
