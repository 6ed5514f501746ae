"""What the prompts of generated traffic share: layers of text, outermost first.

`shared` is a layer of texts that many requests have (a system prompt, a tenant's template, documents, examples);
`stack` puts layers one behind the other and numbers their streams; `benchmarks` reads the forms that load generators
have for the same thing.
"""

from kvsim.workload.layers.shared import Shared
from kvsim.workload.layers.stack import LayerMap, Stack, layer_map

__all__ = ["LayerMap", "Shared", "Stack", "layer_map"]
