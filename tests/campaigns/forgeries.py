"""Certificates with one character changed and the digest made anew: none that claims something else may hold."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import Any

import oracle
from campaigns.tally import Tally
from exactdp.accounting.certificates.certificate import Certificate, certify
from exactdp.accounting.certificates.verify import verify
from exactdp.errors import ExactDPError
from strategies import composition_of, random_small

_QUESTIONS: list[dict[str, Any]] = [
    {"epsilon": "7/2", "digits": 12},
    {"epsilon": -1, "digits": 20},
    {"delta": "1e-10", "digits": 15},
    {"alpha": "1/20", "digits": 15},
]


@cache
def _genuine(seed: int) -> Certificate:
    rng = random.Random(seed)
    mechanisms = random_small(rng)
    while oracle.lattice_size(mechanisms) > 2000:
        mechanisms = random_small(rng)
    return certify(composition_of(mechanisms), **rng.choice(_QUESTIONS))


def forged(seed: int) -> Tally:
    """Ten forgeries of one certificate; the genuine one holds."""
    tally, rng, genuine = Tally(), random.Random(seed), _genuine(seed)
    tally.check(verify(genuine).holds, f"seed {seed}: a genuine certificate does not hold")
    text = genuine.to_json()
    places = [i for i, c in enumerate(text) if c.isdigit()]
    while tally.trials < 11:
        place = rng.choice(places)
        altered = text[:place] + rng.choice("0123456789") + text[place + 1 :]
        if altered == text:
            continue
        try:
            read = Certificate.from_json(altered)
            found = verify(replace(read, sha256=read.digest()))
        except ExactDPError:  # refused in one sentence
            tally.check(True, "")
            continue
        same = (read.composition, read.given, read.value) == (genuine.composition, genuine.given, genuine.value)
        true = same and read.lower <= genuine.upper and genuine.lower <= read.upper
        tally.check(true or not found.holds, f"seed {seed}: a forgery at character {place} holds")
    return tally
