"""Which DeepSpeed are the files for?"""

from __future__ import annotations

DEEPSPEED_VERSION = "0.19.8"
