"""What PCI DSS asks of payment pages: the inventory of scripts, reports of browsers, the daily check."""
