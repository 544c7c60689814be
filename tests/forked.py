"""Runs in a copy of this process what ends its process or limits it; a new process would import for seconds."""

import os
import sys

import torch


def in_a_copy(work):
    """The exit status of a copy of this process that ends with what `work` returns, and what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 70
        try:
            # To the pipe, not to files of the tests' runner, which a limit on files would cut as well.
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            sys.stdout = sys.stderr = os.fdopen(writing, "w", buffering=1)
            torch.set_num_threads(1)
            status = work()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text
