"""RL post-training: which devices generate, which train, and in which layouts a step is fastest.

The question is ``problem.py``; what is started is ``deployment.py``; ``predict/`` plays a step (generation with its
long tail, the passes of the trainer, the weights' way from trainer to engines); ``search/`` finds the best deployment;
``evidence/`` judges predictions by measured steps.
"""
