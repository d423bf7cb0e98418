"""The parts of the merchant API's fields, views and descriptions that do not depend on merchants or money."""
