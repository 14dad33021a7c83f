"""Runs the tutorials' notebooks when the site is built, and makes pages of what they show: no output lies in git.

They run in an empty folder that holds links to what they read, without the network; what is published goes to the Hub
of the tests, on this machine. A cell that fails fails the build. The pages leave out progress bars and warnings.
"""

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
SUPPORT = ROOT / "tests" / "support"
sys.path.append(str(SUPPORT))

import nbformat  # noqa: E402
from loopback_hub import LoopbackHub  # noqa: E402
from mkdocs.config.defaults import MkDocsConfig  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402
from nbclient import NotebookClient  # noqa: E402
from nbconvert import MarkdownExporter  # noqa: E402
from nbformat import NotebookNode  # noqa: E402

FOLDER = Path("tutorials")
READ = ("configuration", "model_cards", "run_glue_style")
PATIENCE = 600  # seconds for a cell, on a machine that has other work


def run_notebook(path: Path) -> NotebookNode:
    """A notebook with the outputs of its cells.

    Args:
        path: The notebook; it stays as it is.

    Raises:
        CellExecutionError: A cell fails.
    """
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    with ExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
        here = home / "docs" / "pages" / FOLDER  # as it lies in a clone
        here.mkdir(parents=True)
        for name in READ:
            (home / name).symlink_to(ROOT / name)
        hub = stack.enter_context(LoopbackHub(home / "hub"))
        hub.add_user("ada", "hf_ada")
        environment = hub.environment(home / "cache", "hf_ada") | {
            "HF_DATASETS_CACHE": str(home / "datasets"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join((str(SUPPORT / "loopback_only"), str(ROOT))),
            "TRANSFORMERS_VERBOSITY": "error",
        }
        client = NotebookClient(
            notebook, timeout=PATIENCE, coalesce_streams=True, resources={"metadata": {"path": str(here)}}
        )
        client.execute(env=environment)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Puts a page in the place of each notebook, beside the notebook itself and its pictures."""
    for path in sorted((Path(config.docs_dir) / FOLDER).glob("*.ipynb")):
        text, resources = MarkdownExporter().from_notebook_node(run_notebook(path))
        text += f"\n[This page as a notebook]({path.name})\n"
        for name, picture in resources["outputs"].items():
            text = text.replace(f"]({name})", f"]({path.stem}-{name})")
            files.append(File.generated(config, f"{FOLDER}/{path.stem}-{name}", content=picture))
        files.append(File.generated(config, f"{FOLDER}/{path.stem}.md", content=text))
    return files
