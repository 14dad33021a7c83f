"""What the site makes of the repository: pages from outside its folder, the config's fields, links between files."""

import os.path
import re
from dataclasses import fields
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from modeling_dsa import DSAConfig
from modeling_dsa.files.markdown import markdown_table

ROOT = Path(__file__).parents[1]
CONFIG_PAGE = "reference/config.md"
PAGES = (
    "results/README.md",
    "results/*/README.md",
    "results/*/*.png",
    "results/*/hops/*.png",
    "benchmarks/README.md",
    "benchmarks/*.png",
)


def config_page() -> str:
    """The fields of the config with their defaults, bounds and help, as they are declared."""
    rows = []
    for field in fields(DSAConfig):
        if "help" in field.metadata:
            bound = field.metadata["bound"]
            text = field.metadata["help"]
            rows.append([f"`{field.name}`", f"`{field.default!r}`", bound.demand if bound else "", text])
    return (
        "# Config\n\n"
        "The fields of [`DSAConfig`][modeling_dsa.configuration_dsa.DSAConfig]. The training scripts take each as an "
        "option.\n\n" + markdown_table(["field", "default", "must", "what it is"], rows) + "\n"
    )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages to what MkDocs has found."""
    for path in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
        files.append(File(path.relative_to(ROOT).as_posix(), str(ROOT), config.site_dir, config.use_directory_urls))
    files.append(File.generated(config, CONFIG_PAGE, content=config_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files of the repository become links to their pages or, where the site has none, to the repository."""
    if page.file.abs_src_path is None:  # made, not written
        return markdown
    folder = Path(page.file.abs_src_path).parent
    pages = {Path(file.abs_src_path): file.src_uri for file in files if file.abs_src_path is not None}
    pages[ROOT / "modeling_dsa" / "config_fields_dsa.py"] = CONFIG_PAGE

    def link(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve()
        if target in pages:
            return f"]({os.path.relpath(pages[target], Path(page.file.src_uri).parent)}"
        if target.exists():
            return f"]({config.repo_url}/blob/main/{target.relative_to(ROOT).as_posix()}"
        return found[0]

    return re.sub(r"\]\((?!\w+:)([^)#\s]+)", link, markdown)
