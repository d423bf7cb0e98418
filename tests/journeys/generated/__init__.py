"""Third-party programs that use the API's document: clients in two languages, and a collection of requests."""
