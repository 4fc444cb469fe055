"""What a worker of the studio's tests does: the real work, and trouble where the name of the design asks for it."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from exactdp.apps.studio.work.dispatch import answered

FIRST_DELTA = "1e-5"


def answer(name: str, question: dict[str, Any]) -> dict[str, Any]:
    wanted = question.get("design", {}).get("name", "")
    if wanted == "sleep":
        time.sleep(600)
    if wanted == "nap":
        time.sleep(1.0)
    if wanted == "stuck after the first part" and name == "overall_part" and question["at"] != [FIRST_DELTA]:
        time.sleep(600)
    if wanted == "crash":
        os._exit(3)
    if wanted == "hunger":
        np.ones(1 << 34).sum()
    if wanted == "defect":
        raise KeyError("what a user typed")
    if wanted == "pid":
        return {"pid": os.getpid(), "remarks": []}
    if wanted == "grow":
        globals()["_kept"] = np.ones(1 << 23)  # 64 MB that stay
        return {"pid": os.getpid(), "remarks": []}
    return answered(name, question)
