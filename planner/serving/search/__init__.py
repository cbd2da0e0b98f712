"""The space of deployments, bounds, the proved best."""
