"""Make the data set of pendulum.yaml: `python datasets/pendulum.py --out data/pendulum --workers 8`."""

import sys

from physvision.cli import main

if __name__ == "__main__":
    sys.exit(main(["generate", "pendulum", "--config", "pendulum.yaml", *sys.argv[1:]]))
