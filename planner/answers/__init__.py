"""What is asked of plans: explanation, difference, sensitivity, re-planning, throughput, sweeps, views."""
