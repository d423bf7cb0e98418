// Stops the clock of a receiver at FAKETIME. The tests compile this file together with receiver.go.
// The library of Debian's package faketime has no effect on Go, which reads the clock without the C library.
package main

import (
	"os"
	"time"
)

func init() {
	stopped, err := time.Parse("2006-01-02 15:04:05", os.Getenv("FAKETIME"))
	if err == nil {
		now = func() time.Time { return stopped }
	}
}
