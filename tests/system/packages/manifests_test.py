#!/usr/bin/env python3
"""What lies in config/kubernetes is what Kubernetes takes, gives containers no more than they need, and has settings for the daemon.

manifests_test.py MILLRACED
"""

from __future__ import annotations

import copy
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "tests" / "support"))
from skips import skip_all  # noqa: E402

try:
    import kubernetes_validate
    import yaml
except ImportError as why:
    skip_all(f"the Kubernetes manifests: {why}; `config/setup.sh test` makes an interpreter that has it")

OLDEST = "1.29"
"""The first version that is checked, beside the newest that the checker knows."""

FIRST = {"ValidatingAdmissionPolicy": "1.30", "ValidatingAdmissionPolicyBinding": "1.30"}
"""Where a kind came later, the version that had it first."""


FOLDER = TOP / "config" / "kubernetes"
PATCH = FOLDER / "gpu.yaml"
"""What `kubectl patch` adds to the DaemonSet."""


def merged(onto: Any, patch: Any) -> Any:
    """As Kubernetes merges what is here: lists of what has names by these."""
    if isinstance(patch, dict):
        return {**onto, **{key: merged(onto[key], value) if key in onto else value for key, value in patch.items()}}
    if isinstance(patch, list):
        named = {one["name"]: one for one in onto}
        return list({**named, **{one["name"]: merged(named.get(one["name"], {}), one) for one in patch}}.values())
    return patch


def objects() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for one in yaml.safe_load_all(path.read_text()):
            if path != PATCH:
                yield f"{path.name}: {one['kind']}", one
            if one.get("kind") == "DaemonSet":
                yield f"{path.name} with {PATCH.name}: DaemonSet", merged(one, yaml.safe_load(PATCH.read_text()))


def complaint(one: dict[str, Any], version: str) -> str:
    """What Kubernetes has against it; empty: nothing."""
    try:
        kubernetes_validate.validate(one, version, strict=True)
    except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as why:
        return str(why)
    return ""


def pods(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if one["kind"] == "Pod":
        yield one["spec"]
    if one["kind"] == "DaemonSet":
        yield one["spec"]["template"]["spec"]


def taken_too_much(pod: dict[str, Any]) -> Iterator[str]:
    for key in ("hostIPC", "hostPID", "hostNetwork"):
        if pod.get(key):
            yield key
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        name, security = container["name"], container["securityContext"]
        if security["capabilities"]["drop"] != ["ALL"]:
            yield f"{name} keeps capabilities"
        if security["allowPrivilegeEscalation"] or not security["readOnlyRootFilesystem"]:
            yield f"{name} may change what it is"
        if "memory" not in container["resources"]["limits"]:
            yield f"{name} has no limit on its memory"
    for volume in pod["volumes"]:
        if volume.get("hostPath", {}).get("path", "").startswith("/dev"):
            yield f"{volume['name']} is a folder of devices of the node"


def killed_for_draining(pod: dict[str, Any]) -> Iterator[str]:
    """Health turns to "not serving" while an administrator drains a daemon: that is not to be ready, and no reason to die."""
    for container in pod["containers"]:
        for probe, alive in (("startupProbe", True), ("livenessProbe", True), ("readinessProbe", False)):
            command = container.get(probe, {}).get("exec", {}).get("command", [])
            if command and ("--alive" in command) != alive:
                yield f"{container['name']}: {probe} is {' '.join(command)}"


def not_kept_from_being_the_daemon(seen: list[dict[str, Any]]) -> str:
    """The policy names the user that the daemon runs as; empty: it does."""
    daemon = next(one for one in seen if one["kind"] == "DaemonSet")["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    policy = next(one for one in seen if one["kind"] == "ValidatingAdmissionPolicy")
    forbidden = f"in [0, {daemon}]"
    if any(forbidden in rule["expression"] for rule in policy["spec"]["validations"]):
        return ""
    return f"the policy does not keep pods from running as the daemon's user, {daemon}"


def refused_settings(one: dict[str, Any], daemon: str) -> str:
    if one["kind"] != "ConfigMap":
        return ""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(one["data"]["millrace.toml"])
        file.flush()
        ran = subprocess.run([daemon, "--config", file.name, "--check-config"], capture_output=True, text=True, check=False)
    return ran.stderr if ran.returncode else ""


def main() -> int:
    wrong: list[str] = []
    seen = list(objects())
    for name, one in seen:
        oldest = FIRST.get(one["kind"], OLDEST)
        for version in (oldest, kubernetes_validate.latest_version()):
            if said := complaint(one, version):
                wrong.append(f"{name}, Kubernetes {version}: {said}")
        misspelled = copy.deepcopy(one)
        misspelled["metadata"]["nmae"] = "x"
        if not complaint(misspelled, oldest):
            wrong.append(f"{name}: a misspelled field passes, so nothing was checked")
        wrong += [f"{name}: {what}" for pod in pods(one) for what in (*taken_too_much(pod), *killed_for_draining(pod))]
        if said := refused_settings(one, sys.argv[1]):
            wrong.append(f"{name}: {said}")
    if {"DaemonSet", "ConfigMap", "Pod", "ValidatingAdmissionPolicy"} - {one["kind"] for _, one in seen}:
        wrong.append("a manifest is missing")
    elif said := not_kept_from_being_the_daemon([one for _, one in seen]):
        wrong.append(said)
    print("\n".join(wrong) or f"{len(seen)} objects: fine")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
