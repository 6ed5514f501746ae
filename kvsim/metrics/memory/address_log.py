"""Where everything lies, as changes: from a time on a run of slots is of this class, for this sequence."""

from array import array


class AddressLog:
    """Changes in the order in which they happened: of two at the same time and place the later one holds.

    The pool is free before the first one. `sequence` is an id, and 0 where the slots are free; `kind` numbers
    `step.CLASSES`. A change takes 33 bytes.
    """

    def __init__(self) -> None:
        self.time_ps = array("q")
        self.start = array("q")
        self.slots = array("q")
        self.sequence = array("q")
        self.kind = array("b")

    def __len__(self) -> int:
        return len(self.time_ps)

    def add(self, time_ps: int, start: int, slots: int, sequence: int, kind: int) -> None:
        """From `time_ps` on so many slots from `start` on are of this class, for this sequence.

        A change that goes on where the last one ended lengthens it.
        """
        if (
            self.time_ps
            and self.start[-1] + self.slots[-1] == start
            and (self.time_ps[-1], self.sequence[-1], self.kind[-1]) == (time_ps, sequence, kind)
        ):
            self.slots[-1] += slots
            return
        self.time_ps.append(time_ps)
        self.start.append(start)
        self.slots.append(slots)
        self.sequence.append(sequence)
        self.kind.append(kind)
