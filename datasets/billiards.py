"""Make the data set of billiards.yaml: `python datasets/billiards.py --out data/billiards --workers 8`."""

import sys

from physvision.cli import main

if __name__ == "__main__":
    sys.exit(main(["generate", "billiards", "--config", "billiards.yaml", *sys.argv[1:]]))
