"""What a strategy costs: time, memory and schedule under a back-end's physics, with their uncertainty."""
