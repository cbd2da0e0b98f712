"""Frameworks that run RL post-training, one room each: what they can express, their files, their own checks."""
