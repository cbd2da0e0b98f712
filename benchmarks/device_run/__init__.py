"""Measurements of real software on one device, for the planner to be judged by: see README.md beside this file."""
