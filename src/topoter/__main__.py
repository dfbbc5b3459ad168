"""`python -m topoter` is `topoter`."""

from topoter.cli import main

main()
