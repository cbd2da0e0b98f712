"""One parallel strategy: its fields as data, its text form, its mesh of ranks, many of them as arrays."""
