"""What every door asks: the question that is meant, and the operations on it."""
