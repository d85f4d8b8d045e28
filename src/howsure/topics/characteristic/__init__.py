"""The uncertainty characteristics curve: width against misses over all operating points."""
