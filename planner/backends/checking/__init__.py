"""Would the back-end take this folder?  Three tiers, from our rules to a real run.

directory     tier 1: unchanged, readable, legal by our own rules
edits         tier 1: which file and which key of it was edited by hand
emitted       a folder of `emit`, loaded
validator     tier 2: what the checker of one back-end or launcher is: its packages, its worker, its request
catalogue     tier 2: every validator by the name that ``--with`` takes
environment   tier 2: where a validator's packages live, apart from ours
worker        tier 2: a warm process that answers one JSON line a request (``start_script`` starts it)
answers       tier 2: what the scripts of such processes share
report        all tiers of a folder
The validator of a back-end stands in the back-end's room (``validator``, its script ``validator_worker``), that of a
launcher in ``planner/backends/checking/launchers``.
"""
