"""Rows of published measured runs as planning questions, and the predictions of them."""
