"""Measured kernels of serving engines, and times looked up in them."""
