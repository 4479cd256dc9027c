"""Sphinx's settings for the site that `config/setup.sh docs` makes: which pages it has, the reference, and what links become.

Pages lie in the repository where they are read without the site; Sphinx reads copies. The reference is made of docstrings. For that the
package is imported with empty modules in the place of PyTorch, JAX, Ray and others, of which nothing is installed.
"""

import ast
import importlib
import re
import shutil
import sys
from pathlib import Path

from docutils import nodes
from myst_parser.mdit_to_docutils.base import default_slugify
from sphinx import addnodes
from sphinx.ext.autodoc.mock import mock
from sphinx.util import inspect, logging

TOP = Path(__file__).resolve().parents[2]
PACKAGE = TOP / "client/python/src/millrace"

# The pages under their headings in the navigation, with shorter titles than their own. REFERENCE and MODULES are the reference.
PAGES = {
    "The Python package": {
        "client/python/README.md": "Begin here",
        "client/python/doc/install.md": "Installing",
        "client/python/doc/train.md": None,
        "client/python/doc/datasets.md": None,
        "client/python/doc/recipes.md": None,
        "client/python/doc/augment.md": None,
        "client/python/doc/transforms.md": "torchvision's and timm's transforms",
        "client/python/doc/albumentations_and_dali.md": "Albumentations and DALI",
        "client/python/doc/gpu.md": None,
        "client/python/doc/ray.md": None,
        "client/python/doc/hugging_face.md": None,
        "client/python/doc/processors.md": None,
        "client/python/doc/serving.md": None,
        "client/python/doc/cores.md": "Dividing the cores",
        "client/python/doc/memory.md": None,
        "client/python/doc/errors.md": None,
        "client/python/doc/overview.md": None,
    },
    "Python reference": {},
    "C++ and the command line": {"client/README.md": "libmillrace and millrace"},
    "Operating": {
        "daemon/doc/operating.md": None,
        "config/kubernetes/README.md": "Kubernetes",
        "daemon/doc/web.md": None,
        "daemon/doc/metrics.md": None,
        "config/prometheus/README.md": "Prometheus",
        "daemon/doc/session_time.md": None,
        "daemon/doc/costs.md": None,
        "daemon/doc/why.md": None,
        "daemon/doc/trace.md": None,
        "daemon/doc/devices.md": None,
        "daemon/doc/gpu.md": "GPUs",
        "daemon/doc/fpga.md": "FPGA cards",
        "daemon/doc/gpu_sharing.md": "Tensors in a GPU's memory",
        "daemon/cache/README.md": "The cache",
        "daemon/doc/security_model.md": None,
        "daemon/doc/faults.md": "Faults",
    },
    "How it works": {
        "daemon/doc/README.md": None,
        "daemon/doc/life_of_a_batch.md": None,
        "daemon/doc/threading.md": None,
        "daemon/doc/cpu_engine.md": "The CPU engine",
        "daemon/doc/add_a_backend.md": None,
        "daemon/doc/words.md": None,
    },
}
PICTURE = "daemon/doc/overview.svg"
COMPLETE = ("client/python/doc", "daemon/doc")  # folders of which PAGES has every page

# What `millrace` itself has, by subject.
REFERENCE = {
    "api/client": ("Clients, sessions, batches", """
        connect Client Session Batch Tensor DeviceTensor Sample Path Part Ring RingRoom Limits Device Statistics SessionStatistics Metric
        JobStatistics Cost Findings Finding"""),
    "api/datasets": ("Datasets and epochs", """
        Dataset DatasetSample Epoch EpochShape OrderedBatch Samples Encoded Pairs mask_recipe read_manifest SkippedFiles SkippedFilesWarning
        UnlabelledWarning BadImageWarning Shards CompressedShards RemoteShards ShardWarning Parquet
        RemoteFiles"""),
    "api/recipe": ("Recipes", """
        Recipe Box BoxCrop RandomResizedCrop GridCell ExactSize ShorterSide LongerSide BoundedSides SmartResize TileGrid RandomShorterSide
        ScaleJitter CentreCrop Pad Size Normalise Patches Erasing BlockShuffle"""),
    "api/daemon": ("Private daemons, previews", "serve PrivateDaemon preview Preview"),
    "api/errors": ("Errors: millrace.errors", """
        Error InvalidRequest NotFound PermissionDenied ResourceExhausted DeadlineExceeded Cancelled FailedPrecondition Released StaleHandle
        Forked DaemonUnavailable Unsupported InternalError SampleFailed SampleError SlotsHeld SlotsWithdrawn"""),
}  # fmt: skip
MODULES = ("torch", "jax", "numpy", "keras", "aio", "recipes", "steps", "hf", "ray", "serving")
SHOWN_FOR = {"serving": ("millrace.serving.settings",)}  # on the page of a module that has no names itself

MEMBERS = "   :members:\n   :inherited-members: BaseException,Exception,OSError,Warning,tuple,dict\n"  # but for what these have

project = "Millrace"
author = "The authors of Millrace"
release = re.findall(r'^version = "(.+)"', (TOP / "client/python/pyproject.toml").read_text(), re.MULTILINE)[0]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
myst_heading_anchors = 6
myst_links_external_new_tab = False

sys.dont_write_bytecode = True  # it would lie in the checkout
sys.path.insert(0, str(PACKAGE.parent))
autodoc_mock_imports = [
    "grpc", "google", "torch", "torchvision", "jax", "keras", "ray", "timm", "albumentations", "transformers", "pyarrow", "tqdm", "PIL",
    "millrace._wire.schema",  # which a wheel has, not a checkout
]  # fmt: skip
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
autoclass_content = "both"
autosummary_generate = False
napoleon_numpy_docstring = False
napoleon_attr_annotations = True
python_use_unqualified_type_names = True

smartquotes_action = "D"  # dashes; quotation marks would change in types, too

html_theme = "furo"
html_title = "Millrace"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

log = logging.getLogger(__name__)


def names_in(module):
    """What its `__all__` lists; None if it has none."""
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return None


def check_complete():
    """Warns where a public name or a page would be missing from the site."""
    shown = {name for _, names in REFERENCE.values() for name in names.split()} | set(MODULES)
    missing = [f"millrace.{name}, in no page of REFERENCE" for name in sorted(names_in(PACKAGE / "__init__.py") - shown)]
    public = [path for path in [*PACKAGE.glob("*.py"), *PACKAGE.glob("*/__init__.py")] if names_in(path) and path.parent.name[0] != "_"]
    modules = {(path.parent if path.name == "__init__.py" else path).stem for path in public}
    missing += [f"millrace.{name}, not in MODULES" for name in sorted(modules - {"millrace", "errors", *MODULES})]
    pages = {page for chapter in PAGES.values() for page in chapter}
    found = {str(path.relative_to(TOP)) for folder in COMPLETE for path in (TOP / folder).glob("*.md")}
    missing += [f"{page}, not in PAGES" for page in sorted(found - pages)]
    for each in missing:
        log.warning("config/docs/conf.py leaves out %s", each)


def reference_pages():
    """The text of each page of the reference, by its name."""
    everything = [name for _, names in REFERENCE.values() for name in names.split()]
    pages = {
        "api/millrace": f"{heading('millrace')}.. automodule:: millrace\n\n"
        ".. currentmodule:: millrace\n\n.. autosummary::\n   :nosignatures:\n\n   " + "\n   ".join(everything) + "\n"
    }
    for page, (title, names) in REFERENCE.items():
        pages[page] = heading(title) + documented("millrace", names.split())
    for module in MODULES:
        listed = names_in(PACKAGE / f"{module}.py") if (PACKAGE / f"{module}.py").exists() else names_in(PACKAGE / module / "__init__.py")
        first = f".. automodule:: millrace.{module}\n" + ("" if listed or module in SHOWN_FOR else MEMBERS)
        rest = documented(f"millrace.{module}", sorted(listed or (), key=lambda name: (name != "Loader", name)))
        others = "".join(f".. automodule:: {other}\n{MEMBERS}\n" for other in SHOWN_FOR.get(module, ()))
        pages[f"api/millrace.{module}"] = heading(f"millrace.{module}") + f"{first}\n{rest}\n{others}"
    return pages


def documented(module, names):
    """Directives for classes and functions of a module, in this order."""
    each = [f".. autoclass:: {name}\n{MEMBERS}" if name[0].isupper() else f".. autofunction:: {name}\n" for name in names]
    return f".. currentmodule:: {module}\n\n" + "\n".join(each)


def heading(title):
    """Of a page of reStructuredText."""
    return f"{title}\n{'=' * len(title)}\n\n"


def collect(app):
    """Puts the pages where Sphinx reads them: README.md with the navigation is the first."""
    check_complete()
    with mock(autodoc_mock_imports):
        importlib.import_module("millrace")  # an error here says itself once, not once a name
    reference = reference_pages()
    navigation = ""
    for chapter, pages in PAGES.items():
        entries = [f"{title} <{page[:-3]}>" if title else page[:-3] for page, title in pages.items()] or list(reference)
        navigation += f"\n```{{toctree}}\n:hidden:\n:caption: {chapter}\n\n" + "\n".join(entries) + "\n```\n"
        for page in pages:
            Path(app.srcdir, page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / page, Path(app.srcdir, page))
    shutil.copy(TOP / PICTURE, Path(app.srcdir, PICTURE))
    Path(app.srcdir, "index.md").write_text((TOP / "README.md").read_text() + navigation)
    Path(app.srcdir, "api").mkdir()
    for page, text in reference.items():
        Path(app.srcdir, f"{page}.rst").write_text(text)


def anchors_of(page):
    """The anchors of a page of Markdown that the site does not have."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {default_slugify(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).replace("`", "")) for title in found}


def settle_links(app, document):
    """Links to what the repository has and the site has not become text that names the place; those to nothing stay, and Sphinx warns."""
    folder = TOP if app.env.docname == "index" else (TOP / app.env.docname).parent
    for node in list(document.findall(addnodes.pending_xref)):
        target, _, anchor = node["reftarget"].partition("#")
        if node["reftype"] != "myst" or node.get("refdomain") == "doc" or not target:
            continue
        place = (folder / target).resolve()
        page = f"api/millrace.{place.stem}"
        if place == TOP / "README.md" or (place.parent == PACKAGE and page in app.env.found_docs):
            node["refdomain"], node["reftargetid"] = "doc", anchor or None
            node["reftarget"] = "index" if place.suffix == ".md" else page
        elif place.exists() and place.is_relative_to(TOP):
            if anchor and anchor not in anchors_of(place):
                log.warning("%s has no heading for #%s", target, anchor, location=node)
            where = str(place.relative_to(TOP))
            text = nodes.inline("", "", *node[0].children, classes=["elsewhere"])
            aside = [] if where in text.astext() else [nodes.Text(" ("), nodes.literal(where, where), nodes.Text(")")]
            node.replace_self([text, *aside])


def shorten_navigation(_app, _page, _template, context, _document):
    """Titles alone go through the theme's hands: it asks for every name of every page, beside every page, and shows none of them."""
    whole = context["toctree"]
    context["toctree"] = lambda **options: whole(**{**options, "collapse": True})


def settle_signature(_app, what, _name, each, _options, signature, result):
    """Classes whose base is a module's stand-in are called as their own ``__init__`` says."""
    if what != "class" or signature != "(*args, **kwargs)":
        return None
    return inspect.stringify_signature(inspect.signature(each.__init__, bound_method=True), show_annotation=False), result


def setup(app):
    """Called by Sphinx."""
    app.connect("html-page-context", shorten_navigation, priority=400)  # before the theme
    app.connect("autodoc-process-signature", settle_signature)
    app.connect("builder-inited", collect)
    app.connect("doctree-read", settle_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
