"""What a run has measured: kept pass by pass, summed up, written as Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from figures import AIMS, Spread, best, ratio_in_rounds, spread
from roster import ROSTER
from work import RECIPES

_TITLES = {entry.name: entry.title for entry in ROSTER}
# What a peer's ``antialias`` says, and what its figures stand under. Those without a filter for shrinking are in the tables of rates alone,
# unless they have the pixels before.
BASELINES = {
    "yes": "Beside the fastest that antialiases as Millrace does",
    "box": "Beside the fastest box filter, which does less for each pixel",
    "decoded": "Beside the fastest that has the photographs' pixels before a pass begins, whatever its filter",
}
_ROWS = {"": "", "first": ", first touch", "indexed": ", with index", "packed": ", packed"}


class Results:
    """Appends each pass to a file, so that an interrupted run can go on. All passes are of ``conditions["images"]`` images."""

    def __init__(self, file: Path, conditions: dict[str, Any], *, resume: bool) -> None:
        self._file = file
        self.conditions = conditions
        self.passes: list[dict[str, Any]] = []
        self.about: dict[str, Any] = {}
        self.failures: dict[str, str] = {}
        self.memory: dict[tuple[str, int], int] = {}
        self.differences: dict[tuple[str, str, str], tuple[float, float]] = {}
        if resume and file.exists():
            self.passes = [self._comparable(json.loads(line)) for line in file.read_text().splitlines()]
        else:
            file.write_text("")

    def _comparable(self, found: dict[str, Any]) -> dict[str, Any]:
        if found["images"] != self.conditions["images"]:
            raise ValueError(f"{found['peer']}: a pass of {found['images']} images, where this run's are of {self.conditions['images']}")
        return found

    def has(self, number: int, name: str, cores: int, recipe: str) -> bool:
        wanted = {"round": number, "peer": name, "cores": cores, "recipe": recipe}
        return any(wanted.items() <= found.items() for found in self.passes)

    def add(self, number: int, name: str, cores: int, recipe: str, found: dict[str, Any]) -> None:
        self.passes.append(self._comparable({"round": number, "peer": name, "cores": cores, "recipe": recipe, **found}))
        with self._file.open("a") as file:
            file.write(json.dumps(self.passes[-1]) + "\n")

    def _rates(self, name: str, row: str, recipe: str, cores: int) -> dict[int, float]:
        wanted = {"peer": name, "row": row, "recipe": recipe, "cores": cores}
        return {p["round"]: p["images"] / p["seconds"] for p in self.passes if wanted.items() <= p.items()}

    def _processor(self, name: str, row: str, recipe: str, cores: int) -> Spread | None:
        wanted = {"peer": name, "row": row, "recipe": recipe, "cores": cores}
        return spread(1000 * p["cpu"] / p["images"] for p in self.passes if wanted.items() <= p.items())

    def _keys(self, recipe: str) -> list[tuple[str, str]]:
        seen = {(p["peer"], p["row"]) for p in self.passes if p["recipe"] == recipe and p["peer"] not in self.failures}
        return sorted(seen, key=lambda key: ([entry.name for entry in ROSTER].index(key[0]), key[1]))

    def summary(self) -> dict[str, Any]:
        cores = sorted({p["cores"] for p in self.passes})
        rows = [self._row(name, row, recipe, cores) for recipe in RECIPES for name, row in self._keys(recipe)]
        figures = [figure for filtered in BASELINES for count in cores for figure in self._figures(count, filtered)]
        return {"conditions": self.conditions, "rows": rows, "figures": figures, "peers": self.about, "failures": self.failures}

    def _row(self, name: str, row: str, recipe: str, cores: list[int]) -> dict[str, Any]:
        made: dict[str, Any] = {"peer": name, "row": row, "recipe": recipe, "title": _TITLES[name] + _ROWS.get(row, row)}
        made |= {fact: self.about[name][fact] for fact in ("antialias", "output", "decodes")}
        for count in cores:
            rate = spread(self._rates(name, row, recipe, count).values())
            processor = self._processor(name, row, recipe, count)
            made[f"cores_{count}"] = {
                "images_per_second": vars(rate) if rate else None,
                "cpu_seconds_per_1000": processor.median if processor else None,
                "peak_pss_bytes": self.memory.get((name, count)),
            }
        last = next((p for p in reversed(self.passes) if (p["peer"], p["row"], p["recipe"]) == (name, row, recipe)), None)
        made |= {"note": last["note"], "kept_bytes": last["kept"]} if last else {"note": "", "kept_bytes": 0}
        difference = self.differences.get((name, row, recipe))
        made["difference"] = {"mean": difference[0], "max": difference[1]} if difference else None
        return made

    def _baseline(self, recipe: str, cores: int, filtered: str) -> str | None:
        """Of those that filter so and decode, or that need not decode, and are not Millrace: the fastest."""
        medians = {}
        for name, row in self._keys(recipe):
            rate = spread(self._rates(name, row, recipe, cores).values())
            about = self.about[name]
            if rate and not name.startswith("millrace") and (about["antialias"] if about["decodes"] else "decoded") == filtered:
                medians[name] = rate.median
        return best(medians)

    def _figures(self, cores: int, filtered: str) -> list[dict[str, Any]]:
        found = []
        for figure, recipe, row in (
            ("peers.train.first", "train", "first"),
            ("peers.train.indexed", "train", "indexed"),
            ("peers.train.packed", "train", "packed"),
            ("peers.infer", "infer", "first"),
            ("peers.infer.indexed", "infer", "indexed"),
            ("peers.infer.packed", "infer", "packed"),
        ):
            baseline = self._baseline(recipe, cores, filtered)
            least, aim = AIMS.get(figure, (None, None)) if filtered != "decoded" else (None, None)
            for name in ("millrace", "millrace_fast"):
                ours = self._rates(name, row, recipe, cores) if name not in self.failures else {}
                ratio = ratio_in_rounds(ours, self._rates(baseline, "", recipe, cores)) if baseline else None
                if ratio and baseline:
                    item = {"figure": figure, "fidelity": "fast" if name.endswith("fast") else "exact", "cores": cores, "filter": filtered}
                    found.append({**item, "against": _TITLES[baseline], "ratio": vars(ratio), "at_least": least, "aim": aim})
        return found


_BEGIN, _END = "<!-- peers: written by bench.py --publish from here -->", "<!-- to here -->"


def published(page: str, markdown: str) -> str:
    """The page with this run in the place of the one that it shows."""
    before, rest = page.split(_BEGIN)
    return f"{before}{_BEGIN}\n\n{markdown.rstrip()}\n\n{_END}{rest.split(_END)[1]}"


def write_markdown(summary: dict[str, Any]) -> str:
    parts = [_conditions(summary["conditions"])]
    parts += [_figures(title, [item for item in summary["figures"] if item["filter"] == kind]) for kind, title in BASELINES.items()]
    parts += [_table(recipe, [row for row in summary["rows"] if row["recipe"] == recipe]) for recipe in RECIPES]
    parts += [_kept(summary["conditions"], summary["rows"]), _peers(summary["peers"]), _failures(summary["failures"])]
    return "\n".join(part for part in parts if part)


def _conditions(known: dict[str, Any]) -> str:
    load = "/".join(map(str, known["load"]))
    return (
        f"{known['processor']}, {known['cores']} cores, {known['date']}, Python {known['python']}, load at the start {load}; "
        f"medians of {known['rounds']} rounds, passes of {known['images']:,} images\n"
    )


def _figures(title: str, figures: list[dict[str, Any]]) -> str:
    lines = [f"{title}:", "", "| figure | fidelity | cores | median (range) | at least | aim | against |", "|---|---|---|---|---|---|---|"]
    for item in figures:
        ratio = item["ratio"]
        shown = f"{ratio['median']:.2f}x ({ratio['low']:.2f} - {ratio['high']:.2f})"
        verdicts = f"{_verdict(ratio['median'], item['at_least'])} | {_verdict(ratio['median'], item['aim'])}"
        lines.append(f"| `{item['figure']}` | {item['fidelity']} | {item['cores']} | {shown} | {verdicts} | {item['against']} |")
    return "\n".join([*lines, ""]) if figures else ""


def _verdict(median: float, wanted: float | None) -> str:
    return "" if wanted is None else f"{wanted}" + ("" if median >= wanted else ", **missed**")


def _rate(row: dict[str, Any], cores: int) -> str:
    found = row.get(f"cores_{cores}", {}).get("images_per_second")
    return f"{found['median']:,.0f} ({found['low']:,.0f} - {found['high']:,.0f})" if found else ""


def _memory(row: dict[str, Any], cores: int) -> str:
    found = row.get(f"cores_{cores}", {}).get("peak_pss_bytes")
    return f"{found / 2**20:,.0f}" if found else ""


def _processor(row: dict[str, Any]) -> str:
    found = (row.get("cores_1") or row.get("cores_2") or {}).get("cpu_seconds_per_1000")
    return f"{found:.2f}" if found else ""


def _fastest_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: -(row.get("cores_1", {}).get("images_per_second") or {"median": 0})["median"])


def _table(recipe: str, rows: list[dict[str, Any]]) -> str:
    lines = [
        f"| {recipe} | antialias | output | images/s, one core | two cores | CPU-s per 1,000 | peak MiB, one core, two | "
        "difference to Pillow of 255, mean, max |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in _fastest_first(rows):
        error = row["difference"]
        shown = f"{error['mean']:.2f}, {error['max']:.1f}" if error else "other boxes"
        cells = [row["title"], row["antialias"], row["output"], _rate(row, 1), _rate(row, 2), _processor(row)]
        if row["note"]:
            cells[0] += f" ({row['note']})"
        lines.append("| " + " | ".join([*cells, ", ".join(filter(None, (_memory(row, 1), _memory(row, 2)))), shown]) + " |")
    return "\n".join([*lines, ""])


def _kept(known: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """What training epochs are made of that is not the files, and how fast."""
    lines = [
        f"| train, from what is kept | KiB a photograph | times its file, {known['file_bytes'] / known['images'] / 1024:,.0f} KiB | "
        "images/s, one core | two cores | CPU-s per 1,000 |",
        "|---|---|---|---|---|---|",
    ]
    chosen = [row for row in rows if row["recipe"] == "train" and row["kept_bytes"] > 0]
    for row in _fastest_first(chosen):
        sizes = f"{row['kept_bytes'] / known['images'] / 1024:,.1f} | {row['kept_bytes'] / known['file_bytes']:.3g}"
        lines.append(f"| {row['title']} | {sizes} | {_rate(row, 1)} | {_rate(row, 2)} | {_processor(row)} |")
    return "\n".join([*lines, ""]) if chosen else ""


def _peers(peers: dict[str, Any]) -> str:
    lines = ["| peer | version | settings |", "|---|---|---|"]
    ran = [(entry.title, peers[entry.name]) for entry in ROSTER if entry.name in peers]
    lines += [f"| {title} | {about['versions']} | {about['tuned']} |" for title, about in ran]
    return "\n".join([*lines, ""])


def _failures(failures: dict[str, str]) -> str:
    return "".join(f"- {_TITLES[name]}: not run: {why}\n" for name, why in failures.items())
