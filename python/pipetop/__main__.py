"""`python -m pipetop`: becomes the binary that the wheel installed."""

import os
import sys
import sysconfig

NAME = "pipetop"


def binary():
    """Where installers put scripts: this environment, the user's own, or beside this package (`pip install --target`)."""
    package = os.path.dirname(os.path.abspath(__file__))
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", os.name + "_user"),
        os.path.join(os.path.dirname(package), "bin"),
    ]
    for folder in folders:
        path = os.path.join(folder, NAME)
        if os.access(path, os.X_OK):
            return path
    sys.exit(f"error: no {NAME} binary in {', '.join(folders)}\nhint: reinstall it with `pip install --force-reinstall {NAME}`")


if __name__ == "__main__":
    path = binary()
    os.execv(path, [path, *sys.argv[1:]])
