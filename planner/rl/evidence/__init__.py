"""How far predicted steps are from measured ones, and in which order they stand."""
