"""What checks annotations in the tests: beartype, with integers where floats are asked for, as in PEP 484.

jaxtyping binds dimensions between the arguments of a call, which takes longer than many a function: those whose
annotations name no dimensions are checked by beartype alone.
"""

import functools
import inspect
import typing

import jaxtyping
from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
_with_dimensions = jaxtyping.jaxtyped


def jaxtyped(function=None, *, typechecker):
    """In place of jaxtyping's decorator of this name, which its import hook puts on all functions and classes."""
    if function is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if not inspect.isfunction(function) or _may_name_dimensions(function):
        return _with_dimensions(function, typechecker=typechecker)
    checked = check(function)

    @functools.wraps(function)
    def called(*arguments, **named):
        return (function if jaxtyping.config.jaxtyping_disable else checked)(*arguments, **named)

    return called


def _may_name_dimensions(function):
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # a name that is only there for type checkers, or defined further down
        return True
    return any(map(_has_dimensions, hints.values()))


def _has_dimensions(hint):
    if inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(_has_dimensions(part) for part in typing.get_args(hint))
