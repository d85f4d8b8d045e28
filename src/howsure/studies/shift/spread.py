"""How sure a mean over models is: see `howsure.studies.engine.crossed_spread`."""

from howsure.studies.engine import Spread, crossed_spread

__all__ = ["Spread", "crossed_spread"]
