"""What a reader says of a wrong trace."""

import pytest

from kvsim.errors import InputError
from kvsim.workload.trace.recording import Recording


def message(path, *, read=lambda path, **options: list(Recording(path, **options)), **options):
    """What stands behind the name of the file in the one line that is said."""
    with pytest.raises(InputError) as caught:
        read(path, **options)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")
