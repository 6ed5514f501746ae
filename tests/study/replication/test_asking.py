"""Questions asked side by side: each sees its own runs alone, in its own order, and all go out together."""

from kvsim.study.replication.runs.asking import answered


class Counting:
    """An executor that answers with the piece itself, and keeps how many it was given at a time."""

    def __init__(self):
        self.turns = []

    def map(self, function, pieces):
        pieces = list(pieces)
        self.turns.append(len(pieces))
        return iter(pieces)


def question(name, turns):
    seen = []
    for number, count in enumerate(turns):
        seen += yield [f"{name}{number}.{place}" for place in range(count)]
    return seen


def test_every_question_gets_the_runs_that_it_asked_for_in_order():
    hands, told = Counting(), []
    found = answered(
        [question("a", [2, 1]), question("b", [1, 0, 3]), question("c", [])], hands, lambda *at: told.append(at)
    )
    assert found == [["a0.0", "a0.1", "a1.0"], ["b0.0", "b2.0", "b2.1", "b2.2"], []]
    assert hands.turns == [3, 1, 3]
    assert told == [(1, 3), (2, 3), (3, 3), (4, 4), (5, 7), (6, 7), (7, 7)]


def test_no_question_needs_no_run():
    assert answered([], Counting()) == []
