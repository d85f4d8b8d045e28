"""Tables of any size: what their parts must keep, and who does the parts."""
