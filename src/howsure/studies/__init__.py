"""The experiments of the papers: plans of trials that can be resumed, and a folder a study."""
