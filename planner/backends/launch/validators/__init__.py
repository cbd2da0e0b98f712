"""Does the launcher itself take the files?  From an emitted folder to what its own parser is asked."""
