"""How far predictions are from measured serving points."""
