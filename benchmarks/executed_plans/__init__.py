"""Which plans were executed: small forms of a corpus, trained for two steps on CPU ranks by the back-end's own code.

    python -m benchmarks.executed_plans --backend torchtitan [--count 48] [--resume] [--only ID]...

writes ``benchmarks/results/executed/<back-end>.json``, from which ``docs/reference/executed-plans.md`` is made.
"""
