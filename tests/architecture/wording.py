#!/usr/bin/env python3
"""What check_tree.py says of prose: lines of Markdown, long sentences, words that leave the reader to guess who is meant.

  wording.py PAGE...    prints the sentences of these pages of Markdown that are too long

Prose is what a page of Markdown has beside code, tables, headings and figures that a program writes between its marks.
"""

import re
import sys
from pathlib import Path

MOST_COLUMNS = 120
MOST_WORDS = 25
# Sentences of Markdown with more than MOST_WORDS words. A change may add none: it shortens another one, or lowers this number.
MOST_LONG_SENTENCES = 102

GUESS = re.compile(r"\bwho(?:m|so)?ever\b", re.I)
SENTENCE_ENDS = re.compile(r"(?<=[.!?:])[)*_]*\s+")


def prose_of(text):
    """The lines of prose of a page, each with its number, and None between blocks."""
    fenced = written = is_list = False
    previous = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif "<!--" in line and "from here" in line:
            written = True
        elif "<!--" in line and "to here" in line:
            written = False
        elif not fenced and not written:
            item = re.match(r"\s*([-*+]|\d+[.)])\s", line)
            is_list = bool(item) or (is_list and (not line.strip() or line.startswith(" ")))
            is_code = line.startswith("    ") and not is_list and not (previous.strip() and not previous.startswith("    "))
            if not line.strip() or line.startswith(("|", "#", "<")) or is_code:
                yield None
            else:
                if item:
                    yield None
                yield number, line
        previous = line


def long_sentences(text):
    """The sentences of a page that have more than MOST_WORDS words."""
    block = []
    for line in [*prose_of(text), None]:
        if line is not None:
            block.append(line[1].strip())
            continue
        whole = re.sub(r"\]\([^)]*\)", "]", " ".join(block))
        for sentence in SENTENCE_ENDS.split(whole):
            if len(sentence.split()) > MOST_WORDS:
                yield sentence
        block = []


def violations(path, text):
    """What breaks a rule in one file."""
    for number, line in enumerate(text.splitlines(), 1):
        if word := GUESS.search(line):
            yield f"{path}:{number}: '{word[0]}': name who is meant: the client, the user, the thread that ..."
    if path.endswith(".md"):
        for place in prose_of(text):
            if place and len(place[1]) > MOST_COLUMNS:
                yield f"{path}:{place[0]}: a line of {len(place[1])} columns: break it at {MOST_COLUMNS}"


def too_many_long_sentences(tree):
    """One violation, or none, for all pages of `tree` together."""
    found = [(path, sentence) for path in sorted(tree) if path.endswith(".md") for sentence in long_sentences(tree[path])]
    if len(found) > MOST_LONG_SENTENCES:
        yield (
            f"{len(found)} sentences of Markdown have more than {MOST_WORDS} words, {MOST_LONG_SENTENCES} had before: split the new ones "
            "(tests/architecture/wording.py names them: python3 tests/architecture/wording.py PAGE)"
        )


if __name__ == "__main__":
    for page in sys.argv[1:]:
        for long in long_sentences(Path(page).read_text()):
            print(f"{page}: {len(long.split())} words: {long}")
