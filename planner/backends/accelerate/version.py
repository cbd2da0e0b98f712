"""The release of Accelerate that files are written for."""

ACCELERATE_VERSION = "1.15.0"
