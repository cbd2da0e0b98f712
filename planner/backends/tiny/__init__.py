"""Would the plan really run?  A shrunken model trained on CPU ranks, as each back-end itself trains it."""
