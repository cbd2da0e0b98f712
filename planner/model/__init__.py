"""What is trained: `ModelSpec`, and every reader that makes one."""
