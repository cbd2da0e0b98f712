"""How good the predictions are: measured runs, calibration from them, accuracy against them, conformance of rooms."""
