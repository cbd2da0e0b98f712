"""The release of Megatron-LM that files are written for."""

MEGATRON_CORE_VERSION = "0.19.2"
