"""Checks of a folder by the software itself: its own parsers, asked in processes of their own.

emitted       a folder of launch files, loaded
validator     what the checker of one back-end or launcher is: its packages, its worker, its request
environment   where a validator's packages live, apart from ours (``debian``: programs of Debian packages)
worker        a warm process that answers one JSON line a request (``start_script`` starts it)
answers       what the scripts of such processes share
launchers     the validators of launchers; that of a back-end stands in its room (``validator``, ``validator_worker``)

Which validators there are and what they say of a folder is asked in ``planner.backends.folders``.
"""
