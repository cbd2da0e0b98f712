"""The command line: flags and tables."""
