"""The pipetop binary, as a package so that `python -m pipetop` runs it."""
