"""Tables and plots of `docs/explanation/recall-quality.md`, from what `recall_quality.py` measured.

A table stands between `<!-- table NAME -->` and `<!-- end -->` and is replaced; all else on the
page stays.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.bench.judged.drawing import draw
from engram.bench.plots import draw_figure

TABLE = re.compile(r"(<!-- table ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
DEFAULT, PLAIN = "hybrid", "hybrid method=min_max"
RERANKED = "hybrid rerank=late_interaction"
LABELS = {DEFAULT: "default", PLAIN: "min-max", "text": "words alone", "cosine": "cosine alone"}
NAMES = {
    "locomo": "LoCoMo, categories 1-4",
    "longmemeval-s": "LongMemEval-S, all turns",
    "longmemeval-s-user": "LongMemEval-S, user turns",
    "longmemeval-composed": "LongMemEval composed",
    "cranfield": "Cranfield",
    "scifact": "SciFact",
}
S_ANY, S_ALL = "session_recall_any@5", "session_recall_all@5"
T_ANY, T_ALL = "turn_recall_any@5", "turn_recall_all@5"
MRR, NDCG = "turn_mrr", "ndcg@10"
HEADS = {
    S_ANY: "session any@5",
    S_ALL: "session all@5",
    T_ANY: "turn any@5",
    T_ALL: "turn all@5",
    MRR: "turn MRR",
    NDCG: "nDCG@10",
    "recall@10": "recall@10",
    "mrr@10": "MRR@10",
}
CONVERSATION = (S_ANY, S_ALL, T_ANY, T_ALL, MRR)
DOCUMENT = (NDCG, "recall@10", "mrr@10")
TARGETS = (
    ("locomo", DEFAULT, T_ANY, 76.0),
    ("locomo", DEFAULT, T_ALL, 63.0),
    ("locomo", DEFAULT, MRR, 58.0),
    ("locomo", DEFAULT, S_ANY, 95.5),
    ("locomo", DEFAULT, S_ALL, 84.0),
    ("longmemeval-s", DEFAULT, S_ANY, 98.5),
    ("longmemeval-s", DEFAULT, S_ALL, 92.0),
    ("longmemeval-s", DEFAULT, T_ANY, 92.0),
    ("longmemeval-s", DEFAULT, T_ALL, 78.0),
    ("longmemeval-s", "text", S_ANY, 97.5),
    ("longmemeval-s", "text", S_ALL, 88.0),
    ("longmemeval-composed", DEFAULT, T_ANY, 75.0),
    ("longmemeval-composed", DEFAULT, S_ALL, 68.0),
    ("cranfield", DEFAULT, NDCG, 44.0),
    ("scifact", "text", NDCG, 68.7),
)
"""Set, label, measure, and what it ought to reach, in percent."""
ABLATED = ("locomo", "longmemeval-s", "longmemeval-composed")
DRAWN = ("locomo", "longmemeval-s", "longmemeval-composed")

Figures = Mapping[str, Any]


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def between(bounds: Sequence[float | None]) -> str:
    return " to ".join(percent(bound) for bound in bounds)


def points(one: Figures) -> str:
    # Adding 0 takes the sign from a zero.
    middle, low, high = (
        f"{round(100 * value, 1) + 0.0:+.1f}" for value in (one["difference"], *one["interval"])
    )
    return f"{middle} ({low} to {high})"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)


def groups_of(figures: Figures, name: str, label: str) -> Figures:
    run: dict[str, Figures] = figures["runs"][name]
    return run["variants"][label]


def headline_of(figures: Figures, name: str) -> str:
    return str(figures["runs"][name]["folds"][DEFAULT]["group"])


def measures_of(name: str) -> tuple[str, ...]:
    return DOCUMENT if name in ("cranfield", "scifact") else CONVERSATION


def sets(figures: Figures, _: Figures) -> str:
    rows = []
    for name, title in NAMES.items():
        group = groups_of(figures, name, DEFAULT)[headline_of(figures, name)]
        size = figures["runs"][name]["haystack"]
        sessions = measures_of(name) is CONVERSATION
        rows.append(
            (
                title,
                f"{group['n']:,}" + (f" / {group['n_turn']:,}" if sessions else ""),
                f"{size['sessions']:,.0f}" if sessions else "-",
                f"{size['turns']:,.0f}",
                f"{100 * size['session_share@5']:.1f} %" if sessions else "-",
                f"{100 * size['turn_share@5']:.2f} %",
                f"`{figures['runs'][name]['data_sha256'][:12]}`",
            )
        )
    heads = ("set", "questions (session / turn)", "sessions", "turns or documents")
    return table((*heads, "5 sessions are", "5 turns are", "SHA-256"), rows)


def targets(figures: Figures, _: Figures) -> str:
    rows = []
    for name, label, measure, wanted in TARGETS:
        group = groups_of(figures, name, label)[headline_of(figures, name)]
        reached = 100 * group[measure]
        missed = "reached" if round(reached, 1) >= wanted else f"missed by {wanted - reached:.1f}"
        title = NAMES[name] + ("" if label == DEFAULT else f", {LABELS[label]}")
        rows.append(
            (
                title,
                HEADS[measure],
                f"{wanted:.1f}",
                f"**{reached:.1f}**",
                between(group["interval"][measure]),
                missed,
            )
        )
    return table(("set", "measure", "target", "this run", "95 %", ""), rows)


def main_table(names: Sequence[str]) -> Callable[[Figures, Figures], str]:
    def made(figures: Figures, _: Figures) -> str:
        measures = measures_of(names[0])
        rows = []
        for name in names:
            for label, shown in LABELS.items():
                group = groups_of(figures, name, label)[headline_of(figures, name)]
                rows.append((NAMES[name], shown, *(percent(group[one]) for one in measures)))
        return table(("set", "", *(HEADS[one] for one in measures)), rows)

    return made


def plain(figures: Figures, _: Figures) -> str:
    """The default against min-max, the sign turned: what min-max is worse by."""
    rows = []
    for name, title in NAMES.items():
        found = figures["differences"][name][PLAIN]
        measures = (S_ALL, T_ANY, T_ALL) if measures_of(name) is CONVERSATION else (NDCG,)
        for measure in measures:
            one = found[measure]
            low, high = one["interval"]
            turned = {"difference": -one["difference"], "interval": (-high, -low)}
            counts = (f"{one['losses']:,}", f"{one['wins']:,}", f"{one['ties']:,}")
            rows.append((title, HEADS[measure], points(turned), *counts))
    return table(("set", "measure", "points (95 %)", "better", "worse", "alike"), rows)


def readings(figures: Figures, _: Figures) -> str:
    rows = []
    for name in ("longmemeval-s", "longmemeval-s-user", "longmemeval-composed"):
        for group, title in (
            ("all", "official: abstentions out"),
            ("all_with_abstention", "with abstentions"),
            ("flagged", "those with a marked turn"),
            ("type_weighted", "types weighted as in the whole set"),
        ):
            one = groups_of(figures, name, DEFAULT)[group]
            counts = (f"{one['n']:,}", f"{one['n_turn']:,}")
            rows.append((NAMES[name], title, *counts, *(percent(one[m]) for m in CONVERSATION)))
    heads = ("set", "questions", "n", "n turn", *(HEADS[one] for one in CONVERSATION))
    return table(heads, rows)


def folds(figures: Figures, _: Figures) -> str:
    rows = []
    for name, title in NAMES.items():
        fold = figures["runs"][name]["folds"][DEFAULT]
        group = groups_of(figures, name, DEFAULT)[fold["group"]]
        for measure in measures_of(name):
            spread = between((fold["min"][measure], fold["max"][measure]))
            whole = percent(group[measure])
            rows.append((title, HEADS[measure], whole, spread, between(group["interval"][measure])))
    return table(("set", "measure", "whole", "lowest to highest fold", "95 %"), rows)


def cross_validated(figures: Figures, _: Figures) -> str:
    rows = []
    for name, found in figures["cross_validated"].items():
        group = groups_of(figures, name, DEFAULT)[headline_of(figures, name)]
        chosen = Counter(one.removeprefix("hybrid ") for one in found["chosen"])
        told = ", ".join(f"`{one}`" + f" {n} times" * (n > 1) for one, n in chosen.most_common())
        told = told.replace("`hybrid`", "none")
        for measure in measures_of(name):
            cells = (HEADS[measure], percent(group[measure]), percent(found[measure]), told)
            rows.append((NAMES[name], *cells))
            told = ""
    return table(("set", "measure", "default", "cross-validated", "changes chosen"), rows)


KINDS = {"1": "multi-hop", "2": "temporal", "3": "open-domain", "4": "single-hop"}


def types(figures: Figures, _: Figures) -> str:
    rows = []
    for name in ("locomo", "longmemeval-s", "longmemeval-composed"):
        for group, one in groups_of(figures, name, DEFAULT).items():
            if group.startswith(("all", "flagged", "1-4", "type_")):
                continue
            kind = {**KINDS, "5": "adversarial"}.get(group, group)
            cells = (f"{one['n']:,}", *(percent(one[measure]) for measure in CONVERSATION))
            rows.append((NAMES[name].split(",")[0], kind, *cells))
    return table(("set", "type", "n", *(HEADS[one] for one in CONVERSATION)), rows)


def rows_of(figures: Figures, name: str) -> dict[str, Figures]:
    """Return all that was varied of a set: by what is shown, the differences from the default."""
    further = figures["differences"]
    parts = (name, f"{name}-ablations", f"{name}-pool", f"{name}-rerank")
    rows = {
        f"`{one.removeprefix('hybrid ')}`": found
        for part in parts
        for one, found in further[part].items()
        if one != DEFAULT
    }
    if bare := further.get(f"{name}-without-speakers"):
        rows["no speakers told"] = bare[DEFAULT]
        rows["no speakers told, `method=min_max`"] = bare[PLAIN]
    return rows


def ablations(name: str) -> Callable[[Figures, Figures], str]:
    measures = (S_ALL, T_ANY, MRR) if measures_of(name) is CONVERSATION else (NDCG,)

    def made(figures: Figures, _: Figures) -> str:
        rows = [
            (shown, *(points(found[one]) for one in measures))
            for shown, found in rows_of(figures, name).items()
        ]
        return table(("instead of the default", *(HEADS[one] for one in measures)), rows)

    return made


def abstention(figures: Figures, _: Figures) -> str:
    rows = []
    for name in ("longmemeval-s", "longmemeval-s-user", "longmemeval-composed"):
        one = figures["runs"][name]["abstention"][DEFAULT]
        rows.append(
            (
                f"{NAMES[name]}: `_abs` questions",
                f"{one['n_answerable']:,} / {one['n_abstention']:,}",
                f"{one['auroc_confidence']:.2f}",
                " to ".join(f"{bound:.2f}" for bound in one["interval"]["auroc_confidence"]),
                f"{one['auroc_score']:.2f}",
            )
        )
    for name, one in figures["foreign"].items():
        counts = f"{one['n_answerable']:,} / {one['n_foreign']:,}"
        title = f"{NAMES[name].split(',')[0]}: questions of another haystack"
        rows.append((title, counts, f"{one['auroc_confidence']:.2f}", "-", "-"))
    heads = ("what nothing answers", "answerable / not", "AUROC of confidence", "95 %")
    return table((*heads, "AUROC of score"), rows)


def times(_: Figures, latency: Figures) -> str:
    rows = []
    for name, title in NAMES.items():
        of = latency[name]
        for label in (DEFAULT, PLAIN):
            one = of[label]
            cells = (f"{one['p50_ms']:.1f}", f"{one['p95_ms']:.1f}")
            ratio = one["p50_ms"] / of[PLAIN]["p50_ms"]
            rows.append((title, LABELS[label], f"{one['n']:,}", *cells, f"{ratio:.2f}"))
        if again := latency.get(f"{name}-rerank", {}).get(RERANKED):
            cells = (f"{again['p50_ms']:.1f}", f"{again['p95_ms']:.1f}")
            rows.append((title, "late interaction over 20", f"{again['n']:,}", *cells, "-"))
    return table(("set", "", "n", "p50 ms", "p95 ms", "of min-max"), rows)


def conditions(figures: Figures, _: Figures) -> str:
    one = figures["runs"]["locomo"]
    host = one["host"]
    return (
        f"{one['model']} (SHA-256 of the model `{(one['model_sha256'] or '-')[:12]}`), engram "
        f"{one['engram']}, Python {host['python']}, {host['cores']} cores of {host['cpu']}, seed "
        f"{one['seed']}.\n"
    )


TABLES: Mapping[str, Callable[[Figures, Figures], str]] = {
    "conditions": conditions,
    "sets": sets,
    "targets": targets,
    "conversations": main_table([name for name in NAMES if measures_of(name) is CONVERSATION]),
    "documents": main_table(("cranfield", "scifact")),
    "plain": plain,
    "readings": readings,
    "folds": folds,
    "cross-validation": cross_validated,
    "types": types,
    **{f"ablations-{name}": ablations(name) for name in NAMES if name != "longmemeval-s-user"},
    "abstention": abstention,
    "times": times,
}


def fill(page: Path, figures: Figures, latency: Figures) -> None:
    """Replace every table of the page."""
    text = page.read_text(encoding="utf-8")

    def made(found: re.Match[str]) -> str:
        return f"{found[1]}\n{TABLES[found[2]](figures, latency)}\n{found[3]}"

    page.write_text(TABLE.sub(made, text), encoding="utf-8")


def draw_all(figures: Figures, folder: Path) -> None:
    """Draw recall against the number of answers, and what each change does, beside the page."""
    for name in ("locomo", "longmemeval-s"):
        with tempfile.TemporaryDirectory() as drawn:
            curves, *_ = draw(figures["runs"][name], Path(drawn))
            (folder / f"recall-quality-{name}.png").write_bytes(curves.read_bytes())
    draw_figure(
        folder / "recall-quality-ablations.png",
        lambda axes: draw_ablations(axes, figures),
        xlabel="turn any@5 less that of the default, points, with 95 % intervals",
    )


def draw_ablations(axes: Any, figures: Figures) -> None:
    # What every set has, in the order of the tables.
    shown = [one for one in rows_of(figures, DRAWN[-1]) if one not in ("`text`", "`cosine`")]
    for at, name in enumerate(DRAWN):
        found = [rows_of(figures, name)[one][T_ANY] for one in shown]
        middle = [100 * one["difference"] for one in found]
        errors = [
            [max(0.0, m - 100 * one["interval"][0]) for m, one in zip(middle, found, strict=True)],
            [max(0.0, 100 * one["interval"][1] - m) for m, one in zip(middle, found, strict=True)],
        ]
        places = [place + 0.25 * at for place in range(len(shown))]
        axes.errorbar(middle, places, xerr=errors, fmt="o", markersize=3, label=NAMES[name])
    axes.axvline(0.0, color="black", linewidth=1)
    axes.set_yticks(
        [place + 0.25 for place in range(len(shown))], [one.strip("`") for one in shown]
    )
    axes.invert_yaxis()
