"""Screens and documents, the same words in every run: drawn by Chromium where it is installed, else by Pillow."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from html import escape
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "seven", "bright", "wizards", "measure", "tensors")
FONTS = Path(matplotlib.get_data_path(), "fonts", "ttf")
SANS, MONO = FONTS / "DejaVuSans.ttf", FONTS / "DejaVuSansMono.ttf"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60  # seconds for a page


def draw_screens(photograph: np.ndarray) -> tuple[dict[str, np.ndarray], str]:
    """The pictures by name, and the sentence that says what drew them. ``photograph`` is a part of one of them."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        return _by_pillow(photograph), "No Chromium is installed: Pillow draws the screens instead."
    try:
        return _by_browser(browser, photograph), "Chromium draws the screens."
    except subprocess.SubprocessError as why:
        return _by_pillow(photograph), f"Chromium fails ({type(why).__name__}): Pillow draws the screens instead."


def _sentence(dice: random.Random, words: int) -> str:
    return " ".join(dice.choice(WORDS) for _ in range(words))


def _pages(dice: random.Random, picture: str) -> dict[str, tuple[int, int, str]]:
    """Width, height and HTML."""
    paragraphs = "".join(f"<p>{_sentence(dice, 90).capitalize()}.</p>" for _ in range(14))
    rows = "".join(
        f"<tr><td>{number}</td><td>{_sentence(dice, 3)}</td><td>{dice.uniform(0, 1000):,.2f}</td><td>{dice.choice(WORDS)}</td></tr>"
        for number in range(42)
    )
    code = escape(
        "\n".join(f"{'    ' * dice.randrange(4)}{_sentence(dice, 2).replace(' ', '_')} = {dice.randrange(999)}" for _ in range(48))
    )
    cards = "".join(
        f"<div class=card><h3>{_sentence(dice, 2)}</h3><p>{_sentence(dice, 24)}</p><button>{dice.choice(WORDS)}</button></div>"
        for _ in range(9)
    )
    style = "<style>body{font:16px/1.5 'DejaVu Sans',sans-serif;margin:32px}td{border:1px solid #ccc;padding:2px 12px}"
    style += ".card{display:inline-block;vertical-align:top;width:29%;margin:1%}"
    style += ".card{border-radius:12px;padding:12px;background:#2b3040;box-shadow:0 4px 12px #0008}"
    style += ".dark{background:#181b24;color:#dde}button{background:linear-gradient(#28f,#15b);color:#fff;border:0;padding:8px 24px}"
    style += "pre{font:15px/1.4 'DejaVu Sans Mono',monospace}</style>"
    return {
        "article": (1280, 1800, f"{style}<h1>{_sentence(dice, 6)}</h1><img src='{picture}' width=600>{paragraphs}"),
        "code": (1280, 1080, f"{style}<body class=dark><pre>{code}</pre>"),
        "dashboard": (1920, 1080, f"{style}<body class=dark><h1>{_sentence(dice, 4)}</h1>{cards}"),
        "document": (1654, 2339, f"{style}<div style='font:26px/1.5 serif;margin:90px'>{paragraphs}</div>"),
        "table": (1366, 1400, f"{style}<h2>{_sentence(dice, 5)}</h2><table style='border-collapse:collapse'>{rows}</table>"),
    }


def _by_browser(browser: str, photograph: np.ndarray) -> dict[str, np.ndarray]:
    drawn = {}
    with tempfile.TemporaryDirectory() as place:
        Image.fromarray(photograph).save(Path(place, "photograph.png"))
        for name, (width, height, text) in _pages(random.Random(1), "photograph.png").items():
            page, shot = Path(place, f"{name}.html"), Path(place, f"{name}.png")
            page.write_text(f"<!doctype html><meta charset=utf-8>{text}")
            command = [browser, "--headless", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={place}/profile"]
            command += ["--no-sandbox"] if os.geteuid() == 0 else []  # as root it does not run otherwise
            command += [f"--window-size={width},{height}", f"--screenshot={shot}", page.as_uri()]
            subprocess.run(command, check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            drawn[name] = np.asarray(Image.open(shot).convert("RGB"))
    return drawn


class _Text:
    """Lines of words in a box."""

    def __init__(self, picture: Image.Image, dice: random.Random) -> None:
        self.draw, self._dice = ImageDraw.Draw(picture), dice

    def fill(self, box: tuple[int, int, int, int], size: int, colour: tuple[int, int, int], font: Path = SANS) -> None:
        face, (left, y, width, height) = ImageFont.truetype(str(font), size), box
        while y + size < box[1] + height:
            line, wanted = "", width * self._dice.uniform(0.6, 0.95)
            while face.getlength(line) < wanted:
                line += self._dice.choice(WORDS) + " "
            self.draw.text((left, y), line, font=face, fill=colour)
            y += int(size * 1.45)


def _desktop(dice: random.Random, dark: bool, photograph: np.ndarray) -> Image.Image:
    ground, ink, sheet = ((30, 32, 40), (220, 220, 220), (40, 42, 54)) if dark else ((236, 239, 243), (25, 25, 28), (255, 255, 255))
    picture = Image.new("RGB", (1920, 1080), ground)
    text = _Text(picture, dice)
    text.draw.rectangle((0, 0, 1920, 38), fill=(48, 52, 66))
    text.fill((10, 8, 900, 30), 15, (240, 240, 240))
    for window in range(3):
        left = 20 + window * 630
        text.draw.rounded_rectangle((left, 60, left + 600, 1040), 12, fill=sheet, outline=(120, 120, 130))
        text.draw.rectangle((left + 1, 70, left + 599, 100), fill=(70, 110, 200))
        text.fill((left + 12, 110, 570, 420), 16 if window else 13, ink, MONO if window == 1 else SANS)
        for button in range(6):
            text.draw.rounded_rectangle((left + 15 + button * 95, 560, left + 95 + button * 95, 592), 6, fill=(0, 120, 212))
            text.fill((left + 25 + button * 95, 566, 40, 16), 14, (255, 255, 255))
        if window < 2:
            text.fill((left + 12, 620, 570, 400), 18, ink)
    picture.paste(Image.fromarray(photograph).resize((560, 380), Image.Resampling.LANCZOS), (1300, 620))
    return picture


def _by_pillow(photograph: np.ndarray) -> dict[str, np.ndarray]:
    dice = random.Random(1)
    page, terminal = Image.new("RGB", (1654, 2339), (255, 255, 255)), Image.new("RGB", (1280, 800))
    _Text(page, dice).fill((120, 140, 1400, 2080), 26, (0, 0, 0))
    _Text(terminal, dice).fill((6, 6, 1200, 790), 15, (0, 220, 90), MONO)
    drawn = {"light": _desktop(dice, False, photograph), "dark": _desktop(dice, True, photograph), "page": page, "terminal": terminal}
    return {name: np.asarray(picture) for name, picture in drawn.items()}
