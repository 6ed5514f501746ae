"""What an hour of the scenario's GPU costs: as it says, else by the catalogue."""

from kvsim.catalog.gpus import gpu
from kvsim.metrics.cost import Price, catalogue_price
from kvsim.scenario.schema.settings import Settings

UNKNOWN = "not known; give price.usd_per_gpu_hour"


def price_text(name: str, price: Price | None) -> str:
    """Where the price of a GPU comes from, as runs state it."""
    return f"{gpu(name).name}, {UNKNOWN if price is None else price}"


def price_of(settings: Settings) -> Price | None:
    """The price of one GPU; None where neither the scenario nor the catalogue knows one."""
    given = settings.price.usd_per_gpu_hour
    if given is not None:
        return Price(given, given, "given in the scenario")
    return catalogue_price(gpu(settings.gpu))
