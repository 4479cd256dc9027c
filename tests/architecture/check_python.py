"""Holds the Python package to its architecture: which of its packages may import which, no circles, and how many modules a folder has.

The folders of its tests have no more modules than its own.

check_tree.py runs it with its own rules. The rules are the tables below; a new package, or module at the top, gets its row here in the same
commit. What counts:

- An import under ``if TYPE_CHECKING`` runs never and counts nowhere: two modules may name each other's types.
- An import inside a function runs when the function is called. The table counts it, for one needs the other; the rule against circles does
  not, for both can be imported, in any order.
- Every other import runs while its module is imported, and counts in both.
"""

import ast

PACKAGE = "millrace"
FOLDER = "client/python/src/millrace/"
TESTS = "tests/python/"
MOST_MODULES = 20  # in a folder of either

# What everybody may import: values and errors, which know nothing of a daemon.
VALUES = {"errors", "recipe", "ring", "samples", "steps"}

# Which others a package may import, or a module at the top; "" is the package's own __init__. A name with a dot is that one module of a package
# that is else out of reach. "*": anything.
MAY_IMPORT = {
    # values
    "errors": set(),
    "_public": set(),
    "_recipe": {"errors"},
    "recipe": {"errors", "_recipe", "_memory.layout"},
    "steps": {"errors", "_public", "_recipe"},
    "recipes": VALUES,
    "ring": {"errors"},
    "samples": {"errors", "recipe", "ring"},
    # a session with the daemon
    "_process": {"errors"},
    "_wire": VALUES | {"_process", "_data.file_parts"},
    "_memory": VALUES | {"_process", "_wire"},
    "_core": VALUES | {"_process", "_wire", "_memory", "_sheets.pictures", "_data.file_parts", "_data.sample_copies"},
    "client": VALUES | {"_process", "_wire", "_memory", "_core"},
    "aio": VALUES | {"_process", "_wire", "_memory", "_core", "client"},
    "private_daemon": VALUES | {"_process", "_wire", "_core", "client"},
    # what a loader reads, and as what
    "_transforms": VALUES | {"_recipe"},
    "encoded": VALUES | {"_data.hugging_face"},
    "sample_list": VALUES | {"_wire", "_data.columns", "_data.file_parts"},
    "manifest": VALUES | {"_wire", "sample_list"},
    "pairs": VALUES | {"_wire", "sample_list", "_data.file_parts", "_loader.options", "_shards.masks"},
    "_tables": VALUES | {
        "_process", "_wire", "_data", "_remote", "_blocks.parquet", "_loader.block_epoch", "_shards.sources", "encoded", "sample_list",
    },
    "_data": VALUES | {
        "_wire", "_core", "_transforms", "_tables", "encoded", "manifest", "pairs", "sample_list", "_loader.pair_epoch",
        "_blocks.source", "_loader.block_epoch",
    },
    "_shards": VALUES | {"_process", "_wire", "_core", "_data", "sample_list"},
    "_remote": VALUES | {
        "_process", "_wire", "_core.listing_bar", "_shards", "_data.columns", "_data.endings", "_data.file_parts", "_loader.bad_images",
        "_loader.source_rows", "_blocks.source", "encoded", "manifest", "sample_list",
    },
    # loaders
    "_blocks": VALUES | {
        "_process", "_wire", "_data.file_parts", "_remote", "_shards.sources", "_tables.parquet_files", "encoded", "_loader.permutation",
        "_loader.source_rows", "_loader.bad_images",
    },
    "_loader": VALUES | {
        "_process", "_wire", "_memory", "_core", "client", "_recipe", "_transforms", "_data", "_blocks", "encoded", "pairs", "sample_list",
    },
    "_frameworks": VALUES | {"_memory", "_core", "client", "_loader", "pairs"},
    "numpy": VALUES | {"_memory", "_core", "_transforms", "_data", "_loader"},
    "jax": VALUES | {"_memory", "_core", "client", "_transforms", "_data", "_loader", "_frameworks", "pairs"},
    "torch": VALUES | {"_public", "_process", "_memory", "_core", "client", "_transforms", "_data", "_loader", "_frameworks"},
    "keras": VALUES | {"_loader"},
    # programs around it
    "_sheets": VALUES | {"_wire", "_memory", "client", "private_daemon", "_data", "_transforms", "sample_list"},
    "hf._plans": VALUES | {"_memory", "_core"},
    "hf._families": VALUES | {"hf._plans"},
    "hf._inputs": VALUES | {"_wire", "hf._plans"},
    "hf": VALUES | {"_public", "_recipe", "_process", "_wire", "_memory", "_core", "client", "hf._plans", "hf._families", "hf._inputs"},
    "serving": VALUES | {"_wire", "hf"},
    "ray": VALUES | {"", "_process", "_wire", "_core", "_data.endings"},
    "": {"*"},
    "_commands": {"*"},
    "__main__": {"*"},
}  # fmt: skip


def module_of(path):
    """The dotted name of a file of the package, without the package's own: "" for its __init__; None: it is no module of it."""
    if not path.startswith(FOLDER) or not path.endswith(".py"):
        return None
    parts = path[len(FOLDER) : -len(".py")].split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def row_of(module):
    """The row of the table that a module belongs to; None: it has none."""
    if not module:
        return ""
    parts = module.split(".")
    return next((row for row in (".".join(parts[:count]) for count in range(len(parts), 0, -1)) if row in MAY_IMPORT), None)


def imports_of(text):
    """Pairs (name, whether it runs while the module is imported) of all that runs at all; of ``from a import b`` the name is ``a.b``."""
    waiting = [(statement, True) for statement in ast.parse(text).body]
    while waiting:
        node, loading = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((each.name, loading) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (("." * node.level + f"{node.module or ''}.{each.name}", loading) for each in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += [(child, loading) for child in node.orelse]
        else:
            within = loading and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            waiting += [(child, within) for child in ast.iter_child_nodes(node)]


def imported_modules(text, modules):
    """Pairs (module of the package, whether it is imported with this one)."""
    for name, loading in imports_of(text):
        if name == PACKAGE or name.startswith(PACKAGE + "."):
            inner = name[len(PACKAGE) + 1 :]
            yield (inner if inner in modules else inner.rpartition(".")[0]), loading


def may_import(row, module):
    allowed = MAY_IMPORT[row]
    return "*" in allowed or row_of(module) in (row, *allowed) or module in allowed


def row_violations(path, module, imported):
    row = row_of(module)
    if row is None:
        yield f"{path}: no package of the architecture: give it a row in tests/architecture/check_python.py or move it"
        return
    for other in sorted({other for other, _ in imported}):
        if row_of(other) is not None and not may_import(row, other):
            yield f"{path}: imports {PACKAGE}.{other}: {row or PACKAGE} may not import {row_of(other)}"


def circle_violations(needs):
    """Modules that import themselves by way of others, each circle once: the one imported first finds the other half made."""
    walked = set()

    def walk(module, trail):
        if module in trail:
            yield f"{FOLDER}: imports in a circle: {' -> '.join([*trail[trail.index(module) :], module])}"
        elif module not in walked:
            for other in sorted(needs.get(module, ())):
                yield from walk(other, [*trail, module])
            walked.add(module)

    for module in sorted(needs):
        yield from walk(module, [])


def folder_violations(paths):
    folders = {}
    for path in paths:
        folders.setdefault(path.rpartition("/")[0], []).append(path)
    for folder, files in sorted(folders.items()):
        if len(files) > MOST_MODULES:
            yield f"{folder}: {len(files)} modules, over {MOST_MODULES}: make a folder of those of one subject"


def violations(tree):
    """Every violation in `tree`, a mapping from path to text, as one line each."""
    modules = {module_of(path): path for path in tree if module_of(path) is not None}
    tests = [path for path in tree if path.startswith(TESTS) and path.endswith(".py")]
    found, needs = list(folder_violations([*modules.values(), *tests])), {}
    for module, path in sorted(modules.items()):
        imported = set(imported_modules(tree[path], modules))
        if any(name.startswith(".") for name, _ in imports_of(tree[path])):
            found.append(f"{path}: imports by a name that begins with a dot: say it from {PACKAGE} on")
        found += row_violations(path, module, imported)
        needs[module] = {other for other, loading in imported if loading and other != ""} if module else set()
    return found + list(circle_violations(needs))
