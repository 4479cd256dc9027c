#!/usr/bin/env python3
"""Holds the tree to its architecture: who may include whom, how large a file may grow, what stands at the top.

Run it anywhere inside the checkout: `python3 tests/architecture/check_tree.py`. It prints one line a violation and exits 1 if there is one.
The rules are the tables below; a new module gets its row here in the same commit.
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # what is imported here would lie in the checkout
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_python  # noqa: E402
import rooms  # noqa: E402
import wording  # noqa: E402

MAX_LINES = 450
TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "README.md", "LICENSE", ".ci", ".clang-format", ".clang-tidy", ".gitattributes",
    ".gitignore", "client", "config", "daemon", "hls", "kernels", "proto", "systemd", "tests",
}  # fmt: skip

# Which modules a module may include, beside itself and proto/base. "*": anything.
MAY_INCLUDE = {
    "proto/base": set(),
    "proto/shm": set(),
    "proto/rpc": set(),
    "proto/cuda": set(),
    "proto/trace": set(),
    "proto/metadata": set(),
    "client": {"proto/rpc", "proto/shm", "proto/cuda"},
    "client/cli": {"client", "proto/rpc", "proto/shm", "proto/trace", "proto/metadata", "kernels/base", "kernels/jpeg", "kernels/packed", "kernels/mrp", "kernels/cpu", "kernels/l3", "kernels/raster"},
    "kernels/base": set(),
    "kernels/augment": {"kernels/base"},
    "kernels/jpeg": {"kernels/base"},
    "kernels/tensor": {"kernels/base"},
    "kernels/packed": {"kernels/base", "kernels/jpeg"},
    "kernels/mrp": {"kernels/base", "kernels/jpeg", "kernels/packed"},
    "kernels/raster": {"kernels/base"},
    "kernels/l3": {"kernels/base"},
    "kernels/cpu": {"kernels/base", "kernels/jpeg", "kernels/packed", "kernels/tensor"},
    "kernels/cuda": {"kernels/augment", "kernels/base", "kernels/jpeg", "kernels/packed", "kernels/tensor"},
    "hls": set(),
    "hls/host": {"hls", "kernels/base", "kernels/jpeg", "kernels/packed", "kernels/tensor"},
    "hls/card": {"hls"},
    "hls/model": {"hls", "hls/host", "kernels/base", "kernels/jpeg", "kernels/packed", "kernels/tensor"},
    "daemon/model": set(),
    "daemon/admit": {"daemon/model", "daemon/observe"},
    "daemon/heif": {"daemon/model"},
    "daemon/formats": {"proto/metadata", "daemon/model", "daemon/heif", "kernels/l3", "kernels/mrp", "kernels/raster"},
    "daemon/observe": {"proto/trace"},
    "daemon/settings": {"daemon/model"},
    "daemon/draw": {"daemon/model", "kernels/base", "kernels/augment"},
    "daemon/plan": {"daemon/draw", "daemon/model"},
    "daemon/fetch": {"daemon/model", "daemon/formats", "daemon/observe", "proto/shm"},
    "daemon/cache": {"daemon/model", "daemon/observe", "kernels/jpeg", "kernels/cpu"},
    "daemon/place": {"daemon/model", "daemon/formats", "daemon/observe", "daemon/backend"},
    "daemon/backend": {
        "daemon/draw", "daemon/model", "daemon/heif", "proto/cuda", "daemon/memory", "daemon/observe", "daemon/settings", "daemon/cache", "kernels/augment",
        "kernels/base", "kernels/jpeg", "kernels/packed", "kernels/tensor", "kernels/cpu", "kernels/cuda", "kernels/mrp", "kernels/raster", "kernels/l3", "hls", "hls/host",
    },
    "daemon/memory": {"daemon/admit", "daemon/model", "daemon/observe", "proto/shm"},
    "daemon/slots": {"daemon/model", "daemon/memory", "daemon/observe", "proto/shm"},
    "daemon/publish": {"proto/rpc", "proto/shm", "daemon/model", "daemon/observe", "daemon/slots"},
    "daemon/door": {"daemon/admit", "daemon/model", "daemon/observe", "daemon/settings"},
    "daemon/serve": {
        "proto/rpc", "proto/shm", "daemon/admit", "daemon/door", "daemon/model", "daemon/formats", "daemon/observe", "daemon/memory", "daemon/slots",
        "daemon/publish", "daemon/pipeline", "daemon/settings",
    },
    "daemon/pipeline": {
        "daemon/admit", "daemon/model", "daemon/formats", "daemon/observe", "daemon/memory", "daemon/slots", "daemon/plan", "daemon/fetch", "daemon/place",
        "daemon/backend", "proto/shm",
    },
    "daemon/opener": {"daemon/fetch", "daemon/model", "daemon/observe", "daemon/door", "daemon/settings", "proto/shm"},
    "daemon/process": {"*"},
    "daemon/main.cc": {"*"},
    "tests": {"*"},
}  # fmt: skip

# What the two rules below find and is not mended yet, with the reason. A row that nothing breaks any more is a violation itself.
NOT_YET: dict[str, str] = {}

# Modules that do without proto/base: of ours they use themselves and what their rows name.
APART = {"kernels/base", "kernels/augment", "kernels/jpeg", "kernels/packed", "kernels/mrp", "kernels/raster", "kernels/l3", "kernels/tensor", "kernels/cpu", "kernels/cuda", "hls", "hls/host", "hls/card", "hls/model"}

# The pipeline drives the stages through their interfaces alone: of these folders it sees only the top, never a folder inside.
PIPELINE_SEES_ONLY_THE_TOP = {"daemon/backend", "daemon/fetch", "daemon/place", "daemon/plan"}

# Where the headers of an accelerator's maker may be included.
DEVICE_HEADERS = {
    r"(cuda|cublas|nvjpeg|nvml)[\w/]*\.h": ("proto/cuda/", "daemon/backend/cuda/", "tests/"),
    r"(xrt|xclbin|experimental/xrt)[\w/]*(\.h)?": ("daemon/backend/fpga/", "hls/", "tests/"),
}

# Types that are defined in this folder and nowhere else, however convenient a second one may be. Kernels and hls, which use nothing of ours, have their own.
SHARED_TYPES = "proto/base/"
# Who may name the messages that a recipe is made of (but SPOKEN_BY_MANY): what they mean is said in one place. Their schemas: RECIPE_SCHEMAS.
MAY_READ_RECIPES = ("proto/rpc/", "tests/")
RECIPE_SCHEMAS = ("proto/rpc/millrace/v1/recipe.proto", "proto/rpc/millrace/v1/step.proto")
SPOKEN_BY_MANY = {"Box", "Size"}

# What public headers of the client may include in angle brackets: the standard library.
STANDARD_HEADERS = set("""
algorithm any array atomic barrier bit bitset charconv chrono cmath compare complex concepts condition_variable coroutine cstdarg cstddef cstdint
cstdio cstdlib cstring ctime deque exception execution filesystem forward_list fstream functional future initializer_list iomanip ios iosfwd iostream
istream iterator latch limits list locale map memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view system_error thread
tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version
""".split())

# Spelled in halves, so that this file does not trip over itself.
LEFT_OVERS = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
VAGUE_NAMES = re.compile(r"^\s*(?:class|struct)\s+(?:\w+\s+)*?(\w*(?:Manager|Helper|Utils?|Handler))\b(?=[^;]*$)", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)

# At the beginning of a line: not within another type.
TYPE_DEFINED = re.compile(r"^(?:enum class|struct|class)\s+(?:\[\[\w+\]\]\s+|[A-Z_]+\([^)]*\)\s+|MILLRACE_API\s+)*(\w+)\b[^;{]*\{", re.M)
MESSAGE_DEFINED = re.compile(r"^(?:message|enum) (\w+) \{", re.M)
MESSAGE_NAMED = re.compile(r"\bv1::(\w+)\b")

# Likewise, for who names what: constants, functions and other names of types. A call on an object says nothing of where its function is declared.
NAME_DEFINED = re.compile(r"^using (\w+) =|^(?:inline )?constexpr [^;={(]*?\b(k[A-Z]\w*)|^(?!return\b|else\b)[A-Za-z][\w:<>,&*\[\] ]*?[ &*](\w+)\(", re.M)
NAME_SPELLED = re.compile(r"\b(?:[A-Z]\w*[a-z]\w*|k[A-Z]\w*)\b|(?<![\w.>:~])[a-z]\w*(?=\()")
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"', re.S)

# Documents whose tables name tests, each by its sentence in italics, and where these are: a promise of which nobody knows the test is none.
NAMES_TESTS = {"daemon/doc/faults.md", "daemon/doc/security_model.md"}
TEST_NAMED = re.compile(r"(?<![*\w])\*([^\s*][^*\n]*)\*(?![*\w])")
TEST_DEFINED = re.compile(r'TEST_CASE\(\s*((?:"(?:\\.|[^"\\\n])*"\s*)+)')

LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")

# How a test would skip without being listed, and the files that may write so: tests/support/skip.h and skips.py are the ways that are listed.
# tests/bench/cuda and tests/gpu are run by hand on another machine, where there is no list.
SILENT_SKIPS = re.compile(
    r"\bSKIPPED\b|\bnot tested:|WARN\(.*(?:skipped|lacks)|\bexit\(77\)|\b(?:exit|return) 77\b"
    r"|if \(!?(?:kSanitized|is_root\(\)|.*\bgete?uid\(\).*|.*\bis_available\(.*\))\) return;"
)
MAY_SKIP = ("tests/support/skip.cc", "tests/support/skips.py", "tests/architecture/", "tests/bench/cuda/", "tests/gpu/")

CODE = (".h", ".cc", ".cu", ".cuh")
SOURCES = CODE + (".py", ".sh", ".proto", ".cmake", "CMakeLists.txt", ".ci/run")


def module_of(path):
    """The row of the table that `path` belongs to, or None."""
    parts = path.split("/")
    for depth in (2, 1):
        name = "/".join(parts[:depth])
        if name in MAY_INCLUDE:
            return name
    return None


def file_of_include(target, paths):
    """The path that a quoted include names; None when it names nothing in the tree."""
    public = "client/include/" + target
    return public if public in paths else target if target in paths else None


def module_of_include(target, paths):
    """The module that a quoted include names; None when it names nothing in the tree."""
    if target.startswith("millrace/v1/"):
        return "proto/rpc"  # generated
    if target.startswith("millrace/trace/"):
        return "proto/trace"
    path = file_of_include(target, paths)
    return path and module_of(path)


def include_violations(path, text, paths):
    module = module_of(path)
    if module is None:
        yield f"{path}: no module of the architecture: give it a row in tests/architecture/check_tree.py or move it"
        return
    for bracket, target in INCLUDE.findall(text):
        if bracket == "<":
            yield from device_header_violations(path, target)
            continue
        other = module_of_include(target, paths)
        if other is None:
            yield f'{path}: "{target}" is not a file of the tree, from its root (angle brackets are for other people\'s headers)'
        elif other == "tests" and module != "tests":
            yield f'{path}: includes "{target}": the product does not know its tests'
        elif not may_include(module, other):
            yield f'{path}: includes "{target}": {module} may not include {other}'
        elif module == "daemon/pipeline" and other in PIPELINE_SEES_ONLY_THE_TOP and target.count("/") > 2:
            yield f'{path}: includes "{target}": the pipeline sees {other} through its interface only'


def may_include(module, other):
    if other == module:
        return True
    if other == "proto/base":
        return module not in APART
    allowed = MAY_INCLUDE[module]
    return "*" in allowed or other in allowed


def product_includes(tree):
    """Of every product file, the product files that it includes."""
    paths = set(tree)
    return {
        path: {file_of_include(target, paths) for bracket, target in INCLUDE.findall(text) if bracket == '"'} - {None}
        for path, text in tree.items()
        if path.endswith(CODE) and not path.startswith("tests/")
    }


def reached(path, includes):
    """What `path` includes, itself or by way of others."""
    found, waiting = set(), [path]
    while waiting:
        new = includes.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def names_defined(text):
    return set(TYPE_DEFINED.findall(text)) | {name for names in NAME_DEFINED.findall(text) for name in names if name}


def borrowed_names(tree, includes):
    """Names of a module that a file may not include, but reaches by way of a header that it may: it depends on both.

    A name that a module within reach of the rules defines as well is taken for that one.
    """
    code = {path: NO_CODE.sub(" ", tree[path]) for path in includes}
    defined_in = {}
    for path, text in code.items():
        for name in names_defined(text):
            defined_in.setdefault(name, set()).add(path)
    for path in sorted(includes):
        module = module_of(path)
        if module is None or "*" in MAY_INCLUDE[module]:
            continue
        near = reached(path, includes)
        strange = {other for other in near if module_of(other) and not may_include(module, module_of(other))}
        for name in sorted(set(NAME_SPELLED.findall(code[path])) if strange else ()):
            homes = defined_in.get(name, set())
            if homes & strange and all(module_of(home) and not may_include(module, module_of(home)) for home in homes):
                home = min(homes & strange)
                yield f"{path}: names {name}, of {home}: {module} may not include {module_of(home)}, nor borrow it from another's header"


def circles_of_folders(includes):
    """Files of several folders that need each other, a header and its source taken as one: each circle once, by its first file.

    Within a folder a source may use what includes its header; between folders it means that neither is read, tested or replaced alone.
    """
    needs = {}
    for path, others in includes.items():
        needs.setdefault(os.path.splitext(path)[0], set()).update(os.path.splitext(other)[0] for other in others)
    needed = {unit: reached(unit, needs) for unit in needs}
    told = set()
    for unit in sorted(needs):
        circle = {other for other in needed[unit] if unit in needed.get(other, ())}
        if unit not in told and len({os.path.dirname(other) for other in circle}) > 1:
            yield f"{unit}: needs and is needed by {', '.join(sorted(circle - {unit}))}"
        told |= circle


def not_mended(found, known):
    """Of `found`, what the table does not excuse; and the table's rows that excuse nothing."""
    unused = dict(known)
    for line in found:
        excuse = next((row for row in known if line.startswith(row)), None)
        if excuse is None:
            yield line
        unused.pop(excuse, None)
    for row in unused:
        yield f"tests/architecture/check_tree.py: NOT_YET says '{row}', which is so no longer: delete the row"


def circle_violations(includes):
    """Product files that include themselves by way of others, each circle once: #pragma once hides them until a name is missing."""
    walked = set()

    def walk(path, trail):
        if path in trail:
            yield f"{path}: includes itself: {' -> '.join([*trail[trail.index(path) :], path])}"
        elif path not in walked:
            for other in sorted(includes.get(path, ())):
                yield from walk(other, [*trail, path])
            walked.add(path)

    for path in sorted(includes):
        yield from walk(path, [])


def device_header_violations(path, target):
    for pattern, folders in DEVICE_HEADERS.items():
        if re.fullmatch(pattern, target) and not path.startswith(folders):
            yield f"{path}: includes <{target}>: allowed only in {', '.join(folders)}"


def public_header_violations(path, text):
    for bracket, target in INCLUDE.findall(text):
        if bracket == "<" and target not in STANDARD_HEADERS:
            yield f"{path}: includes <{target}>: a public header needs only the standard library"
        if bracket == '"' and not target.startswith(("millrace/", "proto/base/")):
            yield f'{path}: includes "{target}": a public header includes only millrace/ and proto/base/, which are installed with it'


def second_definitions(tree):
    """Types of SHARED_TYPES that another file defines, too."""
    shared = {}
    for path in sorted(tree):
        if path.startswith(SHARED_TYPES) and path.endswith(".h"):
            shared.update((name, path) for name in TYPE_DEFINED.findall(tree[path]))
    for path in sorted(tree):
        if not path.endswith(CODE) or path.startswith(SHARED_TYPES) or module_of(path) in APART:
            continue
        for name in TYPE_DEFINED.findall(tree[path]):
            if name in shared:
                yield f"{path}: defines {name}, which {shared[name]} defines for everyone"


def recipe_violations(tree):
    """Who reads a recipe's messages and has no business to."""
    names = {name for schema in RECIPE_SCHEMAS for name in MESSAGE_DEFINED.findall(tree.get(schema, ""))} - SPOKEN_BY_MANY
    for path in sorted(tree):
        if path.endswith(CODE) and not path.startswith(MAY_READ_RECIPES):
            for name in sorted(names & set(MESSAGE_NAMED.findall(tree[path]))):
                yield f"{path}: names v1::{name}: recipes are read and written in proto/rpc/recipe_message alone"


def is_source(path):
    return path.endswith(SOURCES)


def text_violations(path, text):
    lines = text.count("\n") + (not text.endswith("\n"))
    if is_source(path) and lines > MAX_LINES:
        yield f"{path}: {lines} lines, over {MAX_LINES}: split it by responsibility"
    for match in LEFT_OVERS.finditer(text):
        yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group(0)}: finish it, or open an issue for it"
    if path.startswith("tests/") and is_source(path) and not path.startswith(MAY_SKIP):
        for match in SILENT_SKIPS.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group(0)}: skip with tests/support/skip.h or skips.py, which is listed"
    if path.endswith(CODE):
        for match in VAGUE_NAMES.finditer(text):
            yield f"{path}: {match.group(1)} says little: name it after what it does or is"
    if path.endswith(".h") and not re.search(r"^#pragma once$", text, re.M):
        yield f"{path}: a header begins with #pragma once (after its first comment)"


def link_violations(path, text, paths):
    folders = {os.path.dirname(p) for p in paths}
    for target in LINK.findall(text):
        full = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if full not in paths and full not in folders:
            yield f"{path}: links to {target}, which is not in the tree"


def tests_defined(tree):
    """The sentences of all tests."""
    for path, text in tree.items():
        if path.startswith("tests/") and path.endswith(".cc"):
            for literals in TEST_DEFINED.findall(text):
                yield "".join(re.findall(r'"((?:\\.|[^"\\])*)"', literals)).replace('\\"', '"')


def test_violations(tree):
    """Tests that a document names and that are not there."""
    defined = set(tests_defined(tree))
    for path in sorted(NAMES_TESTS & set(tree)):
        for name in TEST_NAMED.findall(tree[path]):
            if name not in defined:
                yield f"{path}: names the test '{name}', which there is not"


def example_violations(path, text, tree):
    examples = [text for other, text in tree.items() if other.startswith("client/examples/")]
    for block in re.findall(r"^```cpp\n(.*?)^```$", text, re.M | re.S):
        if not any(block in example for example in examples):
            yield f"{path}: this code is not that of an example in client/examples: {block.splitlines()[0]}"


def violations(tree, known=None):
    """Every violation in `tree`, a mapping from path to text, as one line each; `known`: what NOT_YET excuses."""
    found = [f"{top}: not one of the agreed entries at the top" for top in sorted({p.split("/")[0] for p in tree} - TOP_LEVEL)]
    found += second_definitions(tree)
    found += recipe_violations(tree)
    found += test_violations(tree)
    found += rooms.full_folders(tree)
    paths = set(tree)
    for path in sorted(tree):
        text = tree[path]
        found += text_violations(path, text)
        found += wording.violations(path, text)
        if path.endswith(CODE):
            found += include_violations(path, text, paths)
        if path.endswith(".md"):
            found += link_violations(path, text, paths)
        if path == "README.md":
            found += example_violations(path, text, tree)
        if path.startswith("client/include/"):
            found += public_header_violations(path, text)
    includes = product_includes(tree)
    found += not_mended([*borrowed_names(tree, includes), *circles_of_folders(includes)], known or {})
    return found + list(circle_violations(includes))


def listed_by_git(root):
    command = ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return answer.stdout.decode().split("\0")[:-1] if answer.returncode == 0 else []


def found_by_walking(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(("build", ".git", ".cache", ".venv", "__pycache__"))]
        yield from (os.path.relpath(os.path.join(folder, name), root) for name in names)


def read_tree(root):
    """What git would commit (or, outside a checkout, what lies there), texts only."""
    tree = {}
    for path in listed_by_git(root) or found_by_walking(root):
        full = os.path.join(root, path)
        if not os.path.isfile(full):
            continue  # deleted, not yet committed
        with open(full, "rb") as file:
            data = file.read()
        tree[path] = "" if b"\0" in data[:8192] or path.startswith("tests/fuzz/corpus/") else data.decode("utf-8", "replace")
    return tree


def main():
    root = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    tree = read_tree(root)
    found = [*violations(tree, NOT_YET), *rooms.lonely_units(tree), *check_python.violations(tree), *wording.too_many_long_sentences(tree)]
    for line in found:
        print(line)
    print(f"{len(tree)} files, {len(found)} violation{'' if len(found) == 1 else 's'} of the architecture")
    return 1 if found or not tree else 0


if __name__ == "__main__":
    sys.exit(main())
