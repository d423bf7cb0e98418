"""The service as it is deployed, behind TLS and under public names, and the walks through it in a browser."""
