"""What checks annotations in the tests: beartype, with integers where floats are asked for, as in PEP 484.

jaxtyping binds dimensions between the arguments of a call, which takes longer than many a function: those whose
annotations name no dimensions are checked by beartype alone. Checks of every call would take a third of the tests'
time, so each test checks the first calls of each function; and a function within a function, which is made anew at
each call of the outer one, is checked as it is made first.
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
_CALLS_OF_A_TEST = 10
_number_of_test = 0
_inner_functions = set()  # their code, once it was checked


def begin_test():
    """Check the first calls of each function again."""
    global _number_of_test
    _number_of_test += 1


def jaxtyped(function=None, *, typechecker):
    """In place of jaxtyping's decorator of this name, which its import hook puts on all functions and classes."""
    if function is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if dataclasses.is_dataclass(function) and inspect.isfunction(vars(function).get("__init__")):
        function.__init__ = jaxtyped(function.__init__, typechecker=typechecker)
        return function
    if not inspect.isfunction(function):
        return _with_dimensions(function, typechecker=typechecker)
    if function.__code__ in _inner_functions:
        return function
    checked, calls, number_of_test = None, 0, _number_of_test

    @functools.wraps(function)
    def called(*arguments, **named):
        nonlocal checked, calls, number_of_test
        if number_of_test != _number_of_test:
            calls, number_of_test = 0, _number_of_test
        if calls == _CALLS_OF_A_TEST or jaxtyping.config.jaxtyping_disable:
            return function(*arguments, **named)
        if checked is None:
            checked = _checked(function, typechecker)
            if "<locals>" in function.__qualname__:
                _inner_functions.add(function.__code__)
        calls += 1
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
