"""What checks annotations in the tests: beartype, with integers where floats are asked for, as in PEP 484.

jaxtyping binds dimensions between the arguments of a call, which takes longer than many a function: those whose
annotations name no dimensions are checked by beartype alone.
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false

import dataclasses
import functools
import inspect
import typing

import jaxtyping
from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeCallHintViolation

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
_with_dimensions = jaxtyping.jaxtyped


def jaxtyped(function=None, *, typechecker):
    """In place of jaxtyping's decorator of this name, which its import hook puts on all functions and classes."""
    if function is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if dataclasses.is_dataclass(function) and inspect.isfunction(vars(function).get("__init__")):
        function.__init__ = jaxtyped(function.__init__, typechecker=typechecker)
        return function
    if not inspect.isfunction(function):
        return _with_dimensions(function, typechecker=typechecker)
    checked = None

    @functools.wraps(function)
    def called(*arguments, **named):
        nonlocal checked
        if jaxtyping.config.jaxtyping_disable:
            return function(*arguments, **named)
        if checked is None:
            checked = _checked(function, typechecker)
        return checked(*arguments, **named)

    return called


def _checked(function, typechecker):
    """The function with its checks, which are made at its first call: most functions are never called by a test."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # a name that is only there for type checkers, or defined further down
        return _with_dimensions(function, typechecker=typechecker)
    if not any(map(_has_dimensions, hints.values())):
        return check(function)
    if inspect.isgeneratorfunction(function):
        return _with_dimensions(function, typechecker=typechecker)
    checked = check(function)

    # As jaxtyping's own, but for binding the arguments by name, which takes longer than the checks.
    def in_one_context(*arguments, **named):
        with _with_dimensions("context"):
            try:
                return checked(*arguments, **named)
            except BeartypeCallHintViolation as error:
                if error.__traceback__.tb_next.tb_next is None:  # of this call, not of one within it
                    raise jaxtyping.TypeCheckError(str(error)) from error
                raise

    return in_one_context


def _has_dimensions(hint):
    if inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(_has_dimensions(part) for part in typing.get_args(hint))
