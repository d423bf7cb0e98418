"""PCI DSS for payment pages: the script inventory, the reports that browsers send, and a daily check."""
