"""Actions of the lead and the mates on the shares of a split order."""
