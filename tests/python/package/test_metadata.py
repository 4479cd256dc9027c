"""What the installed package says about itself."""

from __future__ import annotations

from importlib.metadata import metadata


def test_who_wrote_it_and_that_there_is_no_licence_yet() -> None:
    said = metadata("millrace")

    assert "authors of Millrace" in (said["Author"] or "")
    assert said["License-Expression"] == "LicenseRef-none-chosen-yet"


def test_numpy_is_asked_for_from_the_oldest_version_that_works() -> None:
    needed = metadata("millrace").get_all("Requires-Dist") or []

    assert [text for text in needed if text.startswith("numpy")] == ["numpy>=1.26"]


def test_the_daemon_that_comes_along_is_of_the_same_version() -> None:
    needed = metadata("millrace").get_all("Requires-Dist") or []

    wanted = [text for text in needed if text.startswith("millrace-daemon")]

    assert [text.split(";")[0].strip() for text in wanted] == [f"millrace-daemon=={metadata('millrace')['Version']}"]
