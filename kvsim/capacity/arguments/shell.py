"""From pasted text to the words after the engine's name: environment, docker, python -m and quotes taken off."""

import re
import shlex
from dataclasses import dataclass, field

from kvsim.capacity.arguments.command import Engine
from kvsim.errors import InputError

_CONTINUED = re.compile(r"[\\^`][ \t]*\r?\n")
"""The end of a line that goes on, in sh, cmd and PowerShell; blanks behind it are a slip of the copying hand."""

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_END = re.compile(r"&&?|\|\|?|;|\d*>.*|&>.*|<")
"""Words of the shell that end a command."""

_MODULES: dict[str, Engine] = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "sglang.launch_server": "sglang",
}
_VERBS: dict[str, Engine] = {"vllm": "vllm", "vllm.entrypoints.cli.main": "vllm", "sglang": "sglang"}
"""Programs and modules that serve with the verb `serve`."""

_SHELLS = ("bash", "sh", "zsh")

_IMAGE = re.compile(r"(?:\S*/)?[\w.-]*(?P<engine>vllm|sglang)[\w.-]*(?::v?(?P<tag>[\w.-]+))?(?:@\S+)?")
_RELEASE = re.compile(r"\d+\.\d+(?:\.\d+)?(?:\.?(?:post|rc|dev)\d+)?")

_DOCKER = ("docker", "podman", "nerdctl")
_DOCKER_SWITCHES = {"--rm", "--detach", "--interactive", "--tty", "--privileged", "--init", "--read-only", "--quiet"}
"""Options of `docker run` without a value; the one-letter ones (-d, -i, -t, -P, -q) may stand together."""

_SHOWN = 60


@dataclass
class Invocation:
    """An engine's name, and the words behind it."""

    engine: Engine
    arguments: list[str]
    version: str | None = None
    environment: dict[str, str] = field(default_factory=dict)


def invocation(text: str) -> Invocation:
    """Find the engine in pasted text. Raises InputError where a quote is open or no engine is named."""
    try:
        words = shlex.split(_CONTINUED.sub(" ", text), comments=True)
    except ValueError as error:
        raise InputError(f"engine arguments: {str(error).lower()} in {_shown(text)}; paste the whole command") from None
    found = _container(words) or _program(words)
    if found is None:
        raise InputError(
            f"engine arguments: no engine in {_shown(text)}; paste the whole command, such as "
            "`vllm serve MODEL --max-model-len 8192` or `python -m sglang.launch_server --model-path MODEL`"
        )
    found.arguments = _until_the_end(found.arguments)
    return found


def _program(words: list[str]) -> Invocation | None:
    """`vllm serve ...`, `python -m MODULE ...`, or a shell's `-c "..."` that holds one."""
    for at, word in enumerate(words):
        before, after = words[:at], words[at + 1 :]
        program = word.rsplit("/", 1)[-1]
        if program in _VERBS and after[:1] == ["serve"]:
            return Invocation(_VERBS[program], after[1:], environment=_assignments(before))
        if word in _MODULES and before[-1:] == ["-m"]:
            return Invocation(_MODULES[word], after, environment=_assignments(before))
        if word in ("-c", "-lc") and after and before and before[-1].rsplit("/", 1)[-1] in _SHELLS:
            inner = invocation(after[0])
            inner.environment = _assignments(before) | inner.environment
            return inner
    return None


def _container(words: list[str]) -> Invocation | None:
    """`docker run OPTIONS IMAGE ...`: the engine by the image's name, its release by the tag."""
    program = next((at for at, word in enumerate(words) if word.rsplit("/", 1)[-1] in _DOCKER), None)
    if program is None or "run" not in words[program:]:
        return None
    options: list[tuple[str, str]] = []
    rest = words[words.index("run", program) + 1 :]
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        switch = name in _DOCKER_SWITCHES or re.fullmatch("-[ditPq]+", name)
        if not equals and not switch and rest:
            value = rest.pop(0)
        options.append((name, value))
    image = _IMAGE.fullmatch(rest[0]) if rest else None
    entry_point = [value for name, value in options if name == "--entrypoint"]
    inside = entry_point + rest[1:]
    found = _program(inside)
    if found is None:
        if image is None:
            return None
        found = Invocation("vllm" if image["engine"] == "vllm" else "sglang", rest[1:])
    release = _RELEASE.match(image["tag"]) if image is not None and image["tag"] else None
    found.version = release[0] if release is not None else None
    given = [value for name, value in options if name in ("-e", "--env")]
    found.environment = _assignments(words[:program] + given) | found.environment
    return found


def _assignments(words: list[str]) -> dict[str, str]:
    return {match[1]: match[2] for word in words if (match := _ASSIGNMENT.fullmatch(word))}


def _until_the_end(words: list[str]) -> list[str]:
    for at, word in enumerate(words):
        if _END.fullmatch(word):
            return words[:at]
    return words


def _shown(text: str) -> str:
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= _SHOWN else f"{flat[:_SHOWN]}...")
