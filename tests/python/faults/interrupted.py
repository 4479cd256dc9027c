"""A program that trains until a KeyboardInterrupt comes where Ctrl-C's could: after a call, at a loop's turn, in a new frame.

    interrupted.py SOCKET DATASET N

At the Nth such place after the first epoch, in the package, in ``threading`` or here.
"""

import dis
import faulthandler
import functools
import itertools
import sys
from types import CodeType, FrameType
from typing import Any

import millrace

HUNG = 300
"""Seconds after which it shows where its threads are, and ends with status 1."""


@functools.cache
def interruptible(code: CodeType) -> frozenset[int]:
    """Where the interpreter looks for signals, as offsets of instructions."""
    steps = list(dis.get_instructions(code))
    after = {"RESUME", "CALL", "CALL_FUNCTION_EX", "CALL_KW"}
    behind = {second.offset for first, second in itertools.pairwise(steps) if first.opname in after}
    return frozenset(behind | {int(step.argval) for step in steps if "JUMP_BACKWARD" in step.opname})


class Interrupt:
    """A trace function."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __call__(self, frame: FrameType, event: str, _: Any) -> "Interrupt | None":
        name = frame.f_code.co_filename
        if "/millrace/" not in name and not name.endswith("/threading.py") and name != __file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in interruptible(frame.f_code):
            self._left -= 1
            if self._left == 0:
                sys.settrace(None)
                faulthandler.dump_traceback_later(HUNG, exit=True)
                print("interrupted", flush=True)
                raise KeyboardInterrupt
        return self


def main() -> None:
    interrupt = Interrupt(int(sys.argv[3]))
    with millrace.connect(sys.argv[1]) as client, client.session(millrace.Recipe.train(24), batch=4) as session:
        dataset = session.dataset(sys.argv[2])
        for _ in dataset.epoch(epoch=0, shuffle=True):
            pass
        here = sys._getframe()
        here.f_trace, here.f_trace_opcodes = interrupt, True
        sys.settrace(interrupt)
        for epoch in itertools.count(1):
            for batch in dataset.epoch(epoch=epoch, shuffle=True):
                batch.images.numpy()


main()
