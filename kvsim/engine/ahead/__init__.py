"""What is to come on the decode clock: ends and replacements, the truth that no policy sees."""

from kvsim.engine.ahead.foresight import Foresight

__all__ = ["Foresight"]
