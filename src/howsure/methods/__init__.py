"""Things that are fitted to data and then make, or mend, predictions."""
