"""The verdict: what may be said of a model, judged against one whose y its prediction drew."""
