"""A scenario: what its file, the files it extends, a variant and the command line say together, checked as a
whole."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kvsim.errors import InputError
from kvsim.scenario.checks import check
from kvsim.scenario.checks.references import model_reference, place_of_path, trace_reference
from kvsim.scenario.messages import Mistake, Origin, Origins, alternatives, refuse
from kvsim.scenario.reading.layers import Layers, layer_of_changes, layers_of, read_layers, read_overrides
from kvsim.scenario.reading.merging import KINDS, LENGTHS, Layer, over_with_nulls
from kvsim.scenario.reading.presets import completed_allocator, written_out
from kvsim.scenario.schema import Settings
from kvsim.scenario.schema.explain import explain
from kvsim.units import size_text

if TYPE_CHECKING:
    from kvsim.catalog.engines import Profile


@dataclass(frozen=True, eq=False)
class Scenario:
    """One question, ready to run: the checked `settings`, and where each of their values came from.

    `settings` holds plain numbers: bytes, integer picoseconds, rates per second. `variant` is the name of the
    variant this is (None: the file has none). `given` is the text of the scenario file and of those it
    extends, by file.
    """

    settings: Settings
    variant: str | None = None
    given: dict[str, str] = field(default_factory=dict, repr=False)
    origins: Origins = field(default_factory=dict, repr=False)
    _siblings: tuple["Scenario", ...] = field(default=(), repr=False)
    _layers: tuple[Layers, Layer] | None = field(default=None, repr=False)
    _folder: str = field(default="", repr=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, name: str = "scenario", overrides: Sequence[str] = ()) -> "Scenario":
        """Return the scenario that a nested dict says, in the form of a file: sizes and durations are texts.

        Paths are relative to the working folder; `overrides` are `KEY=VALUE` on top. With `variants`, the result is
        the scenario without any of them, so that has to be complete too; `variants()` gives them. Raises InputError
        with every mistake.
        """
        layers = layers_of(_plain(data), name)
        layer, wrong = read_overrides(overrides)
        mistakes = [*layers.mistakes, *wrong]
        if not layers.variants:
            return _scenario(layers, layer, None, mistakes, name)
        siblings = _all(layers, layer, wrong, name)
        base = _scenario(layers, layer, None, wrong, name)
        return replace(base, _siblings=siblings)

    @property
    def name(self) -> str:
        """The scenario's name; variants share it."""
        return self.settings.name

    @property
    def label(self) -> str:
        """The name of the variant, or of the scenario where it has none."""
        return self.variant or self.settings.name

    @property
    def seed(self) -> int:
        """The seed of every random stream."""
        return self.settings.seed

    @cached_property
    def model(self) -> str:
        """What `catalog.models.model` is asked for: a name, or the path of a config.json."""
        return self._found(model_reference(self.settings.model.name, "model.name", self.origins))

    @cached_property
    def trace(self) -> str | None:
        """What the workload is asked for: the name of a packaged trace or the path of a file; None:
        generated."""
        trace = self.settings.workload.trace
        return None if trace is None else self._found(trace_reference(trace, "workload.trace", self.origins))

    @cached_property
    def lengths_of(self) -> str | None:
        """The trace whose rows give the lengths, likewise; None: lengths come from distributions."""
        trace = self.settings.workload.lengths_of
        return None if trace is None else self._found(trace_reference(trace, "workload.lengths_of", self.origins))

    @cached_property
    def calibration(self) -> str | None:
        """The path of the calibration that step times come from; None: the one that comes with kvsim."""
        file = self.settings.timing.file
        return None if file is None else self._found(place_of_path(file, "timing.file", self.origins))

    @cached_property
    def token_budget(self) -> int:
        """`max_num_batched_tokens` where the profile decides: at least the longest context if prompts come whole."""
        from kvsim.catalog.engines import profile
        from kvsim.catalog.models import model

        engine, rules = self.settings.engine, profile(self.settings.engine.profile)
        chunked = rules.chunked_prefill if engine.chunked_prefill is None else engine.chunked_prefill
        longest = engine.max_model_len or model(self.model).max_context or 0
        return rules.max_num_batched_tokens if chunked else max(rules.max_num_batched_tokens, longest)

    def in_folder(self, folder: str) -> "Scenario":
        """Return the scenario with relative paths seen from `folder`, for a process that works in another one."""
        return replace(self, _folder=folder)

    def _found(self, reference: str) -> str:
        path = os.path.join(self._folder, reference)
        return path if self._folder and os.path.isfile(path) else reference

    def changed(self, changes: Mapping[str, Any], origin: Origin) -> "Scenario":
        """Return the scenario with plain values laid over it by dotted key, as `--set` would; `origin` is their place.

        What profile, presets and defaults decide is decided anew. Raises InputError with every mistake.
        """
        if self._layers is None:
            raise ValueError("changed: this scenario was not made by load, load_all or from_dict")
        layers, overrides = self._layers
        over, mistakes = layer_of_changes(changes, origin)
        return _scenario(layers, over_with_nulls(overrides, over), self.variant, mistakes, self.name)

    def variants(self) -> list[tuple[str, "Scenario"]]:
        """Return the variants of the file by name, in its order; the scenario itself where there are none."""
        return [(scenario.label, scenario) for scenario in self._siblings] or [(self.label, self)]

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a file would say them, complete with defaults: `from_dict` reads it back."""
        return self.settings.model_dump(mode="json", exclude_none=True)

    def resolved(self) -> dict[str, dict[str, Any]]:
        """Return every dotted key with its `value` as a user writes it and the `source` it came from.

        Sources: `FILE:LINE`, `extends FILE:LINE`, `variant NAME FILE:LINE`, `--set`, `profile NAME` (a value that the
        engine's profile decides), `model NAME` (one that the model does), `estimated` (one that the start-up planner
        does, as the run's provenance and device ledger say) and `default`. A value of null is not set and not decided
        by profile or model.
        """
        from kvsim.catalog.engines import profile
        from kvsim.catalog.models import model
        from kvsim.timing.roofline import roofline_parameters

        engine = profile(self.settings.engine.profile)
        preset = self.settings.workload.preset
        rows: dict[str, dict[str, Any]] = {}
        for key, value in _flat(self.settings.model_dump(mode="json")):
            origin = self.origins.get(key)
            source = origin.source if origin is not None else "default"
            if origin is None and key.startswith("allocator.") and engine.allocator.get(key[10:]) == value:
                source = f"profile {engine.name}"
            if origin is None and preset is not None and key.startswith(_BY_PRESET) and _names(key, value, preset):
                source = f"preset {preset}"
            if value is None and key in _BY_PROFILE:
                value, source = _BY_PROFILE[key](engine), f"profile {engine.name}"
                if key == "engine.max_num_batched_tokens":
                    value = self.token_budget
            if value is None and key == "engine.max_model_len":
                value, source = model(self.model).max_context, f"model {self.settings.model.name}"
            if value is None and key in _ESTIMATED:
                source = "estimated"
            rows[key] = {"value": value, "source": source}
            if key == "timing.name" and value == "roofline":
                stated = asdict(roofline_parameters())
                rows |= {f"timing.{name}": {"value": stated[name], "source": "default"} for name in stated}
        return rows


_BY_PROFILE: dict[str, Callable[["Profile"], object]] = {
    "engine.max_num_seqs": lambda profile: profile.max_num_seqs,
    "engine.max_num_batched_tokens": lambda profile: profile.max_num_batched_tokens,
    "engine.chunked_prefill": lambda profile: profile.chunked_prefill,
    "engine.long_prefill_token_threshold": lambda profile: profile.long_prefill_token_threshold,
    "engine.reserve_full_isl": lambda profile: profile.reserve_full_isl,
    "engine.scheduler": lambda profile: profile.scheduler,
    "engine.async_scheduling": lambda profile: profile.pipeline_depth > 1,
    "engine.kernel": lambda profile: profile.kernel,
    "engine.preemption": lambda profile: profile.preemption,
    "engine.swap_space": lambda profile: size_text(profile.swap_space_bytes) if profile.swap_space_bytes else None,
    "allocator.block_size": lambda profile: profile.block_size,
    "allocator.watermark": lambda profile: profile.watermark,
    "allocator.prefix_caching": lambda profile: profile.prefix_caching,
    "capacity.gpu_memory_utilization": lambda profile: profile.gpu_memory_utilization,
}
"""Dotted keys that the engine's profile decides where nobody gives them."""

_BY_PRESET = ("workload.prompt_tokens.", "workload.output_tokens.", "workload.sessions.")
"""Beginnings of dotted keys that `workload.preset` decides where nobody gives them."""


def _names(key: str, value: object, preset: str) -> bool:
    """Whether the key says that a preset is meant, which one, or what of it."""
    word = key.rpartition(".")[2]
    return (word == "distribution" and value == "preset") or (word == "preset" and value == preset) or word == "of"


_Read = tuple[Layers, Layer, list[Mistake]]

_ESTIMATED = ("capacity.activation", "capacity.non_torch", "capacity.cuda_graphs")
"""Dotted keys that the start-up planner decides where nobody gives them."""


def load(path: str | os.PathLike[str], *, overrides: Sequence[str] = (), variant: str | None = None) -> Scenario:
    """Return the scenario of a file, as `variant` where it has variants, with `KEY=VALUE` overrides on top.

    Raises InputError: for a file that cannot be read, for variants without a choice, and else with every
    mistake, each as `FILE:LINE: KEY: VALUE is ...; what would be right`.
    """
    layers, layer, mistakes = _read(path, overrides)
    names = list(layers.variants)
    if variant is None and names:
        raise InputError(f"{layers.file}: this scenario has variants; choose one with --variant: {alternatives(names)}")
    if variant is not None and variant not in names:
        known = f"choose {alternatives(names)}" if names else "the scenario has no variants"
        raise InputError(f"{layers.file}: {variant} is no variant of this scenario; {known}")
    return _scenario(layers, layer, variant, mistakes, _stem(path))


def load_all(path: str | os.PathLike[str], overrides: Sequence[str] = (), varied: Sequence[str] = ()) -> list[Scenario]:
    """Return every variant of a scenario file, in its order; the one scenario where it has none.

    `varied` is laid over `overrides`, as `--vary` gave it. Raises InputError with every mistake of every variant.
    """
    layers, layer, mistakes = _read(path, overrides, varied)
    if not layers.variants:
        return [_scenario(layers, layer, None, mistakes, _stem(path))]
    return list(_all(layers, layer, mistakes, _stem(path)))


def _read(path: str | os.PathLike[str], overrides: Sequence[str], varied: Sequence[str] = ()) -> _Read:
    layers, (layer, wrong) = read_layers(os.fspath(path)), read_overrides(overrides)
    over, wrong_too = read_overrides(varied, "--vary")
    return layers, over_with_nulls(layer, over), [*layers.mistakes, *wrong, *wrong_too]


def _all(layers: Layers, overrides: Layer, mistakes: list[Mistake], name: str) -> tuple[Scenario, ...]:
    scenarios, errors = [], []
    for variant in layers.variants:
        try:
            scenarios.append(_scenario(layers, overrides, variant, [*layers.mistakes, *mistakes], name))
        except InputError as error:
            errors.extend(str(error).splitlines())
    if errors:
        raise InputError("\n".join(dict.fromkeys(errors)))
    return tuple(replace(one, _siblings=tuple(scenarios)) for one in scenarios)


def _scenario(layers: Layers, overrides: Layer, variant: str | None, mistakes: list[Mistake], name: str) -> Scenario:
    from pydantic import ValidationError

    layer = layers.combined(variant, overrides)
    data = {"name": name, **layer.data}
    data["allocator"] = completed_allocator(data)
    if isinstance(data.get("timing"), dict):
        word, default = KINDS["timing"]
        data["timing"] = {word: default, **data["timing"]}
    workload = data.get("workload")
    if isinstance(workload, dict) and "trace" not in workload:
        word, process = KINDS["workload.arrivals"]
        workload = written_out(workload)
        arrivals = workload.get("arrivals", {})
        if isinstance(arrivals, dict) and "clients" not in workload:
            workload = {**workload, "arrivals": {word: process, **arrivals}}
        data["workload"] = workload
    found = list(mistakes)
    settings = None
    try:
        settings = Settings.model_validate(data)
    except ValidationError as error:
        found += explain(error, data)
    told = {mistake.key for mistake in found}
    found += [mistake for mistake in check(data, layer.origins) if mistake.key not in told]
    if found or settings is None:
        raise refuse(found, layer.origins)
    return Scenario(settings, variant, layers.texts, layer.origins, _layers=(layers, overrides))


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): _plain(value) if isinstance(value, Mapping) else value for key, value in data.items()}


def _flat(data: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for word, value in data.items():
        key = prefix + word
        if isinstance(value, dict):
            # Lengths and pool list the parameters of every kind; those of the other kinds do not apply.
            others = key in ("pool", *LENGTHS, "workload.sessions.think", "workload.clients.think")
            rows += _flat({k: v for k, v in value.items() if not others or v is not None}, f"{key}.")
        else:
            rows.append((key, value))
    return rows


def _stem(path: str | os.PathLike[str]) -> str:
    return os.path.splitext(os.path.basename(os.fspath(path)))[0]
