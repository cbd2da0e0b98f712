"""How are ranks started on this machine, and what does a room say of its small runs?"""
