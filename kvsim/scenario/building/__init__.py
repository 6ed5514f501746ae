"""Names and numbers of a checked scenario become policies: allocators, and the engines that drive them."""
