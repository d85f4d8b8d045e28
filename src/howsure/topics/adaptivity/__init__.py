"""Whether predictions are larger where the example is harder, and hold their coverage there.

Ease comes from disturbing the input; cells of equal mass by ease replace bins of size, which
mislead. Source: Jang and Lee 2025.
"""
