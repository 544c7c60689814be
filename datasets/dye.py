"""Make the data set of dye.yaml: `python datasets/dye.py --out data/dye --workers 8`."""

import sys

from physvision.cli import main

if __name__ == "__main__":
    sys.exit(main(["generate", "dye", "--config", "dye.yaml", *sys.argv[1:]]))
