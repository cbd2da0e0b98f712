"""Engines that serve, one room each, and the platforms that deploy them."""
