"""The formats of dates and times where a page names none, such as in the operators' admin."""
