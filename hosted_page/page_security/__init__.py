"""PCI DSS for payment pages: the inventory of scripts, reports of browsers, the daily check."""
