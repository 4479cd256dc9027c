#!/usr/bin/env python3
"""What `millrace web` serves of a daemon under load is what others read: prometheus_client, promtool, and a Prometheus that scrapes it.

prometheus_test.py BIN      the folder of millraced, millrace and millrace_make_pictures

The names in config/prometheus and in daemon/doc/metrics.md are those that are served. Each expression of the dashboard brings data.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "tests" / "support"))
from skips import skip, skip_all  # noqa: E402

try:
    import yaml
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
    from prometheus_client.parser import text_string_to_metric_families as text_format
except ImportError as why:
    skip_all(f"what Prometheus reads: {why}; `config/setup.sh test` makes an interpreter that has it")

CONFIG = TOP / "config" / "prometheus"
OPEN_METRICS = "application/openmetrics-text;version=1.0.0"
PATIENCE = 120.0
OTHERS_NAMES = {"up"}
"""Of figures in our alerts, those that Prometheus itself makes."""

OF_JOBS = re.compile(r"millrace_(job|user)_")
SUFFIXES = ("_bucket", "_sum", "_count")

failures: list[str] = []


def check(fine: bool, what: str) -> None:
    if not fine:
        failures.append(what)
        print(f"FAILED: {what}", flush=True)


def eventually(what: str, look: Any) -> Any:
    until = time.monotonic() + PATIENCE
    while True:
        found = look()
        if found or time.monotonic() > until:
            check(bool(found), what)
            return found
        time.sleep(0.2)


def fetched(url: str, accept: str = "*/*") -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=30) as answer:
        return str(answer.read().decode())


def promised() -> dict[str, tuple[str, set[str]]]:
    """Of daemon/doc/metrics.md: kind and labels by name."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", (TOP / "daemon/doc/metrics.md").read_text(), re.M)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def expressions() -> list[tuple[str, str]]:
    """Title and expression, of the dashboard."""
    dashboard = json.loads((CONFIG / "dashboard.json").read_text())
    return [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])]


def alerts() -> list[tuple[str, str]]:
    rules = yaml.safe_load((CONFIG / "rules.yml").read_text())
    return [(rule["alert"], rule["expr"]) for group in rules["groups"] for rule in group["rules"]]


def names_in(expression: str) -> set[str]:
    without_labels = re.sub(r"\{[^}]*\}|\b(?:by|on|without)\s*\([^)]*\)|\[[^\]]*\]", " ", expression)
    return {name for name in re.findall(r"\b[a-z_]+\b(?!\s*\()", without_labels) if name not in {"by", "on", "and", "or", "unless", "group_left"}}


def names_are_promised() -> None:
    known = promised()
    check(len(known) > 60, "metrics.md has its tables")
    for title, expression in expressions() + alerts():
        for name in names_in(expression) - OTHERS_NAMES:
            base = next((name.removesuffix(suffix) for suffix in SUFFIXES if name.removesuffix(suffix) in known), name)
            check(base in known, f"{title}: {name} is no figure of metrics.md")
    for rule in yaml.safe_load((CONFIG / "rules.yml").read_text())["groups"][0]["rules"]:
        check(len(rule["annotations"]["action"]) > 40, f"{rule['alert']} says what to do")


def pages_are_as_promised(url: str) -> None:
    known = promised()
    text = fetched(url + "metrics")
    families = {family.name: family for family in open_metrics(fetched(url + "metrics", OPEN_METRICS))}
    served: dict[str, tuple[str, set[str]]] = {}
    for family in families.values():
        name = family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        served[name] = (family.type, labels)
        check(bool(family.documentation), f"{name} has a help text")
        check(family.name.endswith(family.unit), f"{name} has a unit that is not its: {family.unit}")
    for name, (kind, labels) in known.items():
        check(name in served, f"{name} is promised and not served")
        if name in served:
            check(served[name][0] == kind, f"{name} is a {served[name][0]}, not a {kind}")
            check(served[name][1] <= labels, f"{name} has labels {served[name][1]}, not {labels}")
    for name in served.keys() - known.keys():
        check(False, f"{name} is served and not promised")
    by_text = {sample.name for family in text_format(text) for sample in family.samples}
    by_open = {sample.name for family in families.values() for sample in family.samples}
    check(by_text == by_open, f"the two formats differ: {by_text ^ by_open}")


def promtool_agrees(url: str, promtool: str) -> None:
    def passes(what: str, *arguments: str, stdin: str | None = None) -> None:
        ran = subprocess.run([promtool, *arguments], input=stdin, capture_output=True, text=True, cwd=CONFIG, check=False)
        check(ran.returncode == 0, f"promtool {what}: {ran.stdout}{ran.stderr}")

    passes("check metrics", "check", "metrics", stdin=fetched(url + "metrics"))
    passes("check rules", "check", "rules", "rules.yml")
    passes("test rules", "test", "rules", "rules_test.yml")
    passes("check config", "check", "config", "scrape.yml")
    tested = set(re.findall(r"alertname: (\w+)", (CONFIG / "rules_test.yml").read_text()))
    check(tested == {name for name, _ in alerts()}, f"alerts and their tests differ: {tested}")


def dashboard_brings_data(url: str, prometheus: str, folder: Path) -> None:
    target = url.removeprefix("http://").rstrip("/")
    config = yaml.safe_load((CONFIG / "scrape.yml").read_text())
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [target]
    config["scrape_configs"][0].update(scrape_interval="1s", scrape_timeout="1s")
    config["rule_files"] = [str(CONFIG / "rules.yml")]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    command = [prometheus, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address=127.0.0.1:{port}"]
    with open(folder / "prometheus.log", "w") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            at = f"http://127.0.0.1:{port}"

            def query(expression: str) -> list[Any]:
                text = expression.replace('"$instance"', '".*"').replace("$__rate_interval", "10s")
                try:
                    return list(json.loads(fetched(f"{at}/api/v1/query?query={urllib.parse.quote(text)}"))["data"]["result"])
                except OSError:
                    return []

            eventually("Prometheus scrapes", lambda: query("millrace_up == 1"))
            has_jobs = bool(json.loads(fetched(url + "api/statistics"))["jobs"])
            for title, expression in expressions():
                if OF_JOBS.search(expression) and not has_jobs:
                    skip("dashboard: costs by job, for this daemon tells none")
                    continue
                eventually(f"{title}: {expression} brings data", lambda asked=expression: query(asked))
            rules = json.loads(fetched(f"{at}/api/v1/rules"))["data"]["groups"][0]["rules"]
            check(len(rules) == len(alerts()), "Prometheus has all alerts")
            eventually("every alert is evaluated", lambda: all(rule["health"] == "ok" for rule in json.loads(fetched(f"{at}/api/v1/rules"))["data"]["groups"][0]["rules"]))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(PATIENCE)


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def main() -> int:
    binaries = Path(sys.argv[1])
    names_are_promised()
    running: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pictures, sock = folder / "pictures", folder / "m.sock"
        subprocess.run([binaries / "millrace_make_pictures", pictures, "64"], check=True, stdout=subprocess.DEVNULL)
        (folder / "m.toml").write_text(f'[daemon]\nsocket = "{sock}"\nstate_dir = ""\n[files]\nroots = ["{pictures}"]\n')

        def start(*command: Any, quiet: bool = True) -> subprocess.Popen[str]:
            output = subprocess.DEVNULL if quiet else subprocess.PIPE
            running.append(subprocess.Popen([str(word) for word in command], stdout=output, stderr=subprocess.DEVNULL, text=True))
            return running[-1]

        try:
            start(binaries / "millraced", "--config", folder / "m.toml")
            eventually("the daemon listens", sock.exists)
            web = start(binaries / "millrace", "web", "--listen", "127.0.0.1:0", "--socket", sock, quiet=False)
            assert web.stdout is not None
            url = web.stdout.readline().split()[-1]
            load = [binaries / "millrace", "run", "--socket", sock, "--dataset", pictures, "--recipe", "train", "--size", "64", "--batch", "8", "--shuffle", "--epochs", "100000"]
            start(*load)
            eventually("the load runs", lambda: "millrace_session_samples_total{" in fetched(url + "metrics"))
            pages_are_as_promised(url)
            promtool, prometheus = shutil.which("promtool"), shutil.which("prometheus")
            if promtool and prometheus:
                promtool_agrees(url, promtool)
                dashboard_brings_data(url, prometheus, folder)
            else:
                skip("Prometheus' own view of our figures, alerts and dashboard: `apt-get install prometheus` brings it and promtool")
        finally:
            for process in reversed(running):
                process.kill()
                process.wait()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
