"""The start of ranks on this machine, and what the room of a back-end says of its small runs."""
