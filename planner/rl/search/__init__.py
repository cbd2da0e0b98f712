"""The divisions of the devices between trainer and engines, their bounds, the best one."""
