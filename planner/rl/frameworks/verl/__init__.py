"""verl (release 0.9.1): Hydra overrides and launch files.

``overrides.py`` says a launch in verl's words and reads it back; ``write.py`` makes the folder; ``validator.py`` asks
verl's own configuration, in a process of its own.
"""
