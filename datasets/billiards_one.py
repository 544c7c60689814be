"""Make the data set of billiards_one.yaml: `python datasets/billiards_one.py --out data/billiards_one --workers 8`."""

import sys

from physvision.cli import main

if __name__ == "__main__":
    sys.exit(main(["generate", "billiards", "--config", "billiards_one.yaml", *sys.argv[1:]]))
