"""Make the data set of block.yaml: `python datasets/block.py --out data/block --workers 8`."""

import sys

from physvision.cli import main

if __name__ == "__main__":
    sys.exit(main(["generate", "block", "--config", "block.yaml", *sys.argv[1:]]))
