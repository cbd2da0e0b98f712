"""What a step takes: generation with its long tail, the trainer's passes, the weights' way, and how they overlap."""
