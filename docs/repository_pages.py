"""Brings pages of the repository that live beside their figures into the site, each under its own path."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = ("results/*/README.md", "results/*/plot.png", "benchmarks/README.md", "benchmarks/*.png")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds them to what MkDocs has found in its own folder."""
    for path in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
        files.append(File(path.relative_to(ROOT).as_posix(), str(ROOT), config.site_dir, config.use_directory_urls))
    return files
