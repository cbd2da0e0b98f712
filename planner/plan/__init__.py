"""The plan document and what is read off it alone."""
