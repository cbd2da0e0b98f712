"""The best strategy of a back-end's space, with its proof."""
