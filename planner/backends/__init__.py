"""The software that trains: one room a back-end, and what rooms are made of."""
