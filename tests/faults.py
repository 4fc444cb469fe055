"""The fault campaign: kills, journals, races, malformed inputs, forgeries and oracle comparisons, counted.

    make faults                          all of it, about ten minutes on two cores
    python tests/faults.py journals      only campaigns whose names contain one of these
    python tests/faults.py --scale 0.1   a tenth of the trials; more than 1 for a longer campaign
    python tests/faults.py --seed 7      other trials of the same kind

Every trial is made from a seed, which the sentence about a failure names. Exit code 1 if anything went wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback

from joblib import Parallel, delayed

from campaigns import calls, command_lines, comparisons, draws, forgeries, journals, requests, runs
from campaigns.tally import Campaign, Tally

CAMPAIGNS = {
    "comparisons": Campaign(comparisons.noise, 300, "bounds of discrete Gaussians against brute force"),
    "any mechanisms": Campaign(comparisons.any_mechanisms, 80, "bounds of any mechanisms against every listed loss"),
    "forgeries": Campaign(forgeries.forged, 60, "certificates altered and hashed anew"),
    "journals": Campaign(journals.damaged, 30, "journals with one to four wounds"),
    "calls": Campaign(calls.edges, 10, "public calls with edge values"),
    "command lines": Campaign(command_lines.wrong_values, 16, "commands with wrong values"),
    "requests": Campaign(requests.malformed, 6, "malformed requests to the studio"),
    "races": Campaign(draws.races, 6, "pairs of releases under one name at once"),
    "steps": Campaign(draws.steps, 1, "releases that fail, are interrupted or killed at a call to the system"),
    "kills": Campaign(draws.kills, 2, "releases killed at a random time"),
    "runs": Campaign(runs.ended, 3, "census runs ended by a signal, and going on"),
}


def _tried(campaign: Campaign, seed: int) -> Tally:
    """One seed; an exception that nobody foresaw is a failure like others."""
    try:
        return campaign.trial(seed)
    except Exception:
        return Tally(1, [f"seed {seed}: {traceback.format_exc()}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help="parts of the names of campaigns")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-j", "--jobs", type=int, default=-1, help="processes; by default one for each core")
    asked = parser.parse_args()
    chosen = {n: c for n, c in CAMPAIGNS.items() if not asked.only or any(part in n for part in asked.only)}
    if not chosen:
        parser.error(f"no campaign has such a name; there are {', '.join(CAMPAIGNS)}")
    wrong = trials = 0
    for name, campaign in chosen.items():
        start = time.monotonic()
        seeds = range(10**6 * asked.seed, 10**6 * asked.seed + max(1, round(campaign.seeds * asked.scale)))
        parts = Parallel(n_jobs=asked.jobs)(delayed(_tried)(campaign, seed) for seed in seeds)
        tally = Tally.total(parts)
        trials, wrong = trials + tally.trials, wrong + len(tally.wrong)
        took = time.monotonic() - start
        print(
            f"{name:18} {tally.trials:7,} trials, {len(tally.wrong)} wrong   {took:4.0f} s   {campaign.words}",
            flush=True,
        )
        for sentence in tally.wrong[:20]:
            print(f"    {sentence}", flush=True)
    print(f"{trials:,} trials, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
