"""A sale on all processes of the service: hundreds of buyers in a minute, each with a separate IP address."""
