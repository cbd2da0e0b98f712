"""Scripts that run the back-ends' own code, each in an environment of its own; they import nothing of ours.

One exception: ``torch_worker.py``, whose target is our own trainer.
"""
