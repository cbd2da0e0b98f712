"""From an emitted folder to what its back-end's validator is asked.  One module a validator."""
