"""What is done with a folder of launch files, whichever back-end: write, check, train a small form on CPU ranks."""
