"""The release of Megatron-Bridge that files are written for."""

BRIDGE_VERSION = "0.6.2"
