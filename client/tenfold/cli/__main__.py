"""`python -m tenfold.cli` is the same as `tenfold`; local.py starts its children this way."""

from tenfold.cli.main import main

main()
