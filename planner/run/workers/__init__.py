"""Scripts that train with a back-end's own code, one process a rank; they import nothing of ours."""
