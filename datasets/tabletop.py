"""Make the data set of tabletop.yaml: `python datasets/tabletop.py --out data/tabletop --workers 8`."""

import sys

from physvision.cli import main

if __name__ == "__main__":
    sys.exit(main(["generate", "tabletop", "--config", "tabletop.yaml", *sys.argv[1:]]))
