"""Work on a folder of launch files of any back-end: written, checked, trained in small on CPU ranks.

emit              a plan becomes files: the back-end's, the launcher's, ``plan.json``, ``PLAN.md``
directory         ``check`` by our own rules: unchanged, readable, legal
edits             which file and which key of it was edited by hand
sharding_folder   the same for a sharding plan
catalogue         every validator by the name that ``--with`` takes
report            our rules and all validators together
tiny_run          ``run --tiny``: a small form of the plan (``shrink``: ``tiny_mesh``, ``tiny_model``, ``tiny_layout``)
"""
