"""``python -m howsure`` is the command ``howsure``."""

from howsure.cli.entry import main

if __name__ == "__main__":
    main()
