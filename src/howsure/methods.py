"""Where methods stood up to version 0.2."""

raise ImportError(
    "howsure.methods moved: scores, ranks and label sets of conformal prediction to "
    "howsure.conformal, all else to howsure_studies.methods, of the distribution howsure-studies "
    "(pip install 'howsure[studies]'; in a checkout pip install -e . -e ./studies)"
)
