"""A planning question: model, cluster, workload, constraints, objective, and what calibrates the answer."""
