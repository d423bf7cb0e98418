"""What others' programs make of the API's document: clients in two languages, a collection of requests."""
