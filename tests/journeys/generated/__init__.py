"""Third-party programs that read the API's document: they generate clients, and send generated requests."""
