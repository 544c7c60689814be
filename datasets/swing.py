"""Make the data set of swing.yaml: `python datasets/swing.py --out data/swing --workers 8`."""

import sys

from physvision.cli import main

if __name__ == "__main__":
    sys.exit(main(["generate", "swing", "--config", "swing.yaml", *sys.argv[1:]]))
