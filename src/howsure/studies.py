"""Where studies stood up to version 0.2."""

raise ImportError(
    "howsure.studies moved to howsure_studies, of the distribution howsure-studies "
    "(pip install 'howsure[studies]'; in a checkout pip install -e . -e ./studies)"
)
