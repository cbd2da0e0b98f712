"""The trainer's old name: folders that were written before it moved say ``python -m planner.native.train``.

The search path of its modules is that of ``planner.backends.native.trainer``, so such a folder still runs.
"""

from __future__ import annotations

from planner.backends.native import trainer

__path__ = trainer.__path__
