"""Host memory behind the pool: where preempted sequences keep their KV until they are let in again."""

from kvsim.errors import CheckError


class HostPool:
    """`slots` of host memory; a sequence takes as many there as it has written, in whole units of the device's pool.

    `used` is in slots. There is no shape to it: swapped blocks lie wherever there is room.
    """

    def __init__(self, slots: int) -> None:
        if slots < 0:
            raise ValueError(f"slots is {slots}; host memory for swapping is 0 slots or more")
        self.slots = slots
        self.used = 0
        self._held: dict[int, int] = {}

    def take(self, number: int, slots: int) -> bool:
        """Keep `slots` for sequence `number`; False, and nothing changed, if there is no room."""
        if self.used + slots > self.slots:
            return False
        self._held[number] = slots
        self.used += slots
        return True

    def give(self, number: int) -> None:
        """Sequence `number` leaves; raises CheckError if it holds nothing here."""
        if number not in self._held:
            raise CheckError(f"request {number} leaves host memory in which it holds nothing (a double free)")
        self.used -= self._held.pop(number)
