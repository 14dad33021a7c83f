"""What a user installs: the archives hold all that training needs, and the bounds hold the versions tested."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import modeling_dsa

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_upper_bounds_are_the_minor_releases_after_those_tested() -> None:
    pins = dict(re.findall(r"^(\S+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), flags=re.M))
    bounds = {requirement.name: requirement.specifier for requirement in map(Requirement, PROJECT["dependencies"])}
    for name in ("torch", "transformers"):
        tested = Version(pins[name])
        assert tested in bounds[name]
        assert Version(f"{tested.major}.{tested.minor + 1}") not in bounds[name]


def test_the_package_knows_its_version() -> None:
    assert modeling_dsa.__version__ == PROJECT["version"] == importlib.metadata.version(PROJECT["name"])
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == PROJECT["version"]


def run(*command: object, cwd: Path) -> str:
    """What a command prints, in an environment that knows nothing of this checkout."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=own, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, as pip does before it installs one: what holds for it holds for both."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, sdist]
    run(sys.executable, "-m", "pip", *build, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture
def install(tmp_path: Path) -> Callable[[Path], Path]:
    """Installs an archive into a fresh environment, which borrows the dependencies of this one."""

    def install(archive: Path) -> Path:
        environment = tmp_path / "environment"
        run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=tmp_path)
        (site,) = environment.glob("lib/python*/site-packages")
        # The paths in a borrowed .pth file are not followed, so that an editable install there stays unseen.
        borrowed = {sysconfig.get_path("purelib"), str(Path(pytest.__file__).parents[1])}
        (site / "borrowed.pth").write_text("\n".join(sorted(borrowed)) + "\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python"]
        run(*pip, "install", "--quiet", "--no-deps", "--no-build-isolation", archive, cwd=tmp_path)
        return environment

    return install


@pytest.mark.slow
def test_the_archives_install_and_train(wheel: Path, install: Callable[[Path], Path], tmp_path: Path) -> None:
    environment = install(wheel)
    programs = environment / "bin"
    empty = tmp_path / "empty"
    empty.mkdir()
    (information,) = environment.glob("lib/python*/site-packages/dsa_transformers-*.dist-info")
    licences = {path.relative_to(information).as_posix() for path in (information / "licenses").rglob("LICENSE")}
    assert licences == {"licenses/LICENSE", "licenses/run_glue_style/sample/LICENSE"}

    said = f"dsa-transformers {PROJECT['version']}\n"
    assert run(programs / "dsa", "--version", cwd=empty) == said
    assert run(programs / "python", "-m", "modeling_dsa", "--version", cwd=empty) == said

    few = ["--recipe", "modern", "--max_train_samples", "128", "--max_train_steps", "2", "--report_to", "none", "--cpu"]
    small = ["--growth_size", "4", "--first_layer_size", "8", "--attention_head_size", "16"]
    launch = ["-m", "accelerate.commands.launch", "--num_processes", "1", "--cpu", "-m", "run_glue_style.run_nli"]
    run(programs / "python", *launch, "--setting", "dsa-single-snli", *few, *small, cwd=empty)
    trained = empty / "runs" / "dsa-single-snli"
    assert json.loads((trained / "all_results.json").read_text(encoding="utf-8"))["steps"] == 2
    card = (trained / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\n")

    code = "import sys, modeling_dsa, run_glue_style; print(modeling_dsa.__file__); print(run_glue_style.__file__)"
    for file in run(programs / "python", "-c", code, cwd=empty).splitlines():
        assert Path(file).is_relative_to(environment)
