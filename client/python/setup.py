"""Puts the schema of the daemon's messages into the wheel, as the compiled form of proto/rpc/millrace/v1/*.proto.

It is a FileDescriptorSet, not generated Python: that one works with every protobuf runtime since 4.22, whereas generated
code demands the runtime of its own year and would have pip replace what other packages need.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
SCHEMA = Path("millrace", "_proto", "schema.binpb")


def proto_root() -> Path:
    """The folder that holds millrace/v1/*.proto: in the checkout, or the copy in an unpacked sdist."""
    for root in (HERE / "proto", HERE.parents[1] / "proto" / "rpc"):
        if (root / "millrace" / "v1").is_dir():
            return root
    raise SystemExit("millrace: no proto/rpc/millrace/v1 beside client/python; build from a checkout, or from the sdist")


def compile_schema(target: Path) -> None:
    from grpc_tools import protoc

    root = proto_root()
    target.parent.mkdir(parents=True, exist_ok=True)
    sources = sorted(str(path.relative_to(root)) for path in root.glob("millrace/v1/*.proto"))
    status = protoc.main(["protoc", f"--proto_path={root}", f"--descriptor_set_out={target}", *sources])
    if status != 0:
        raise SystemExit(f"millrace: protoc failed on {root}")


class BuildWithSchema(build_py):
    def run(self) -> None:
        super().run()
        base = HERE / "src" if self.editable_mode else Path(self.build_lib)
        compile_schema(base / SCHEMA)

    def get_outputs(self, include_bytecode: bool = True) -> list:
        outputs = super().get_outputs(include_bytecode)
        return outputs if self.editable_mode else [*outputs, str(Path(self.build_lib) / SCHEMA)]


class SourcesWithProtos(sdist):
    def make_release_tree(self, base_dir: str, files: list) -> None:
        super().make_release_tree(base_dir, files)
        shutil.copytree(proto_root(), Path(base_dir, "proto"), dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.h", "*.cc"))


setup(cmdclass={"build_py": BuildWithSchema, "sdist": SourcesWithProtos})
