"""What checks annotations in the tests: beartype, with integers where floats are asked for, as in PEP 484."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
