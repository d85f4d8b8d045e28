"""Tables too large for memory: read by parts, assessed by states of parts, and merged."""
