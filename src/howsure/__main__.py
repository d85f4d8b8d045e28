"""``python -m howsure`` is the command ``howsure``."""

from howsure.cli.entry import main

main()
