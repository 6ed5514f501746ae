"""Every form by the name that `--to` takes."""

from kvsim.reporting.exports.chrome_trace import CHROME_TRACE
from kvsim.reporting.exports.csv_tables import CSV
from kvsim.reporting.exports.grafana import GRAFANA
from kvsim.reporting.exports.interface import Export
from kvsim.reporting.exports.markdown import MARKDOWN
from kvsim.reporting.exports.prometheus import PROMETHEUS

EXPORTS: dict[str, Export] = {export.name: export for export in (CHROME_TRACE, PROMETHEUS, GRAFANA, CSV, MARKDOWN)}
