"""The fields, views and descriptions of the merchant API that do not know merchants or money."""
