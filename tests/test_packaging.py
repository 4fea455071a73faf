"""
What is built, and what it says of itself.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

import elastic_events as ee
from elastic_events import schema


ROOT = Path(__file__).parents[1]
CHANGES = (ROOT / "CHANGELOG.md").read_text()
MODULES = (
    "elastic_events_command.py",
    "elastic_events_hook.py",
    "elastic_events_pytest.py",
)


def names_from_git(*options):
    done = subprocess.run(
        ["git", "ls-files", "-z", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.split("\0")) - {""}


@pytest.fixture(name="tracked", scope="module")
def _tracked():
    """
    The files that git tracks, and that are there.
    """
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a checkout, and git")
    return {name for name in names_from_git() if (ROOT / name).exists()}


@pytest.fixture(name="built", scope="module")
def _built(tracked, tmp_path_factory):
    """
    The folder with an sdist, and the wheel that is built from it.
    """
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, folder, "sdist")
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as opened:
        opened.extractall(folder, **safely())
    build(folder / sdist.name.removesuffix(".tar.gz"), folder, "wheel")
    return folder


def safely():
    # An argument that became a duty, and is not in the oldest Pythons.
    return {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def build(root, folder, target):
    pytest.importorskip("hatchling")
    subprocess.run(
        [
            *(sys.executable, "-m", "hatchling", "build"),
            *("--target", target, "--directory", folder),
        ],
        cwd=root,
        capture_output=True,
        check=True,
        timeout=60,
    )


def names_in_sdist(folder):
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as opened:
        return {
            each.name.partition("/")[2]
            for each in opened.getmembers()
            if not each.isdir()
        }


def opened_wheel(folder):
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel)


class TestSdist:
    def test_files(self, built, tracked):
        """All that git tracks, and nothing else: it can be tested itself."""
        # What has not been added yet is not judged.
        new = names_from_git("--others", "--exclude-standard")

        assert tracked | {"PKG-INFO"} == names_in_sdist(built) - new

    def test_script(self, built):
        """What can be run in the checkout can be run there."""
        (script,) = built.glob("*/.ci/run")

        assert script.stat().st_mode & 0o100


class TestWheel:
    def test_files(self, built, tracked):
        """The package with its data, the two modules, the licence."""
        package = {
            name for name in tracked if name.startswith("elastic_events/")
        }
        new = names_from_git("--others", "--exclude-standard")
        with opened_wheel(built) as wheel:
            names = set(wheel.namelist())
        about = {name for name in names if ".dist-info/" in name}

        assert {*package, *MODULES} == names - about - new
        assert {
            "METADATA",
            "RECORD",
            "WHEEL",
            "entry_points.txt",
            "licenses/LICENSE",
        } == {name.partition(".dist-info/")[2] for name in about}

    def test_entry_points(self, built):
        """The command, torch's hook and pytest's plugin are found."""
        with opened_wheel(built) as wheel:
            (name,) = (
                each
                for each in wheel.namelist()
                if each.endswith("entry_points.txt")
            )
            text = wheel.read(name).decode()

        assert [
            "elastic-events = elastic_events_command:main",
            "elastic_events_pytest = elastic_events_pytest",
            "elastic_events = elastic_events_hook:rendezvous_backend",
        ] == [line for line in text.splitlines() if " = " in line]


class TestMetadata:
    @pytest.fixture(name="metadata")
    def _metadata(self, built):
        with opened_wheel(built) as wheel:
            (name,) = (
                each
                for each in wheel.namelist()
                if each.endswith(".dist-info/METADATA")
            )
            return BytesParser().parsebytes(wheel.read(name))

    def test_dependencies(self, metadata):
        """Without an extra, structlog and orjson are all it takes."""
        required = [
            each
            for each in metadata.get_all("Requires-Dist")
            if "extra ==" not in each
        ]

        assert ["orjson", "structlog"] == sorted(
            re.match(r"\w+", each)[0] for each in required
        )

    def test_description(self, metadata):
        """It is README, in Markdown."""
        readme = (ROOT / "README.md").read_text()

        assert "text/markdown" == metadata["Description-Content-Type"]
        assert readme == metadata.get_payload(decode=True).decode()

    def test_no_address(self, metadata):
        """No address is given where there is none."""
        given = {"Project-URL", "Home-page", "Author-email", "Download-URL"}

        assert set() == given & set(metadata)

    def test_pythons(self, metadata):
        """The oldest Python of the classifiers is the one required."""
        minors = [
            int(each.rpartition(".")[2])
            for each in metadata.get_all("Classifier")
            if re.search(r"Python :: 3\.\d+$", each)
        ]

        assert f">=3.{min(minors)}" == metadata["Requires-Python"]


class TestChangelog:
    def test_release(self):
        """It tells of this version, with the date of its release."""
        (told,) = re.findall(
            rf"^## {re.escape(ee.__version__)} - (.*)$", CHANGES, re.MULTILINE
        )

        assert re.fullmatch(r"\d+\.\d+\.\d+", ee.__version__)
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", told)

    def test_keys(self):
        """The order of a line's keys that it states is the order there is."""
        (stated,) = re.findall(
            r"in this order.*?:(.*?)\.\n", CHANGES, re.DOTALL
        )

        assert list(schema.KEYS) == re.findall(r"`(\w+)`", stated)


class TestPages:
    """
    The pages for those who change the project.
    """

    def test_commands(self):
        """Each command of CONTRIBUTING is a leg of .ci/run, or run by one."""
        script = (ROOT / ".ci" / "run").read_text()
        run_there = {
            *(line.strip() for line in script.splitlines()),
            ".venv/bin/python -m pytest",
        }
        legs = set(re.findall(r"^(\w+)\(\)", script, re.MULTILINE))
        page = (ROOT / "CONTRIBUTING.md").read_text()
        (everything, *blocks) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
        commands = "".join(blocks).splitlines()
        named = [
            leg
            for command in commands
            if command.startswith(".ci/run")
            for leg in command.split()[1:]
        ]

        assert ".ci/run\n" == everything
        assert set() == set(named) - legs
        assert [] == [
            command
            for command in commands
            if not command.startswith(".ci/run") and command not in run_there
        ]

    def test_legs(self):
        """CONTRIBUTING tells of each leg that .ci/run has by default."""
        script = (ROOT / ".ci" / "run").read_text()
        (default,) = re.findall(r"^  set -- (.*)$", script, re.MULTILINE)
        page = (ROOT / "CONTRIBUTING.md").read_text()
        told = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)

        assert default.split() == told

    @pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md"])
    def test_links(self, name):
        """Every link leads to a file of the project."""
        page = (ROOT / name).read_text()
        links = re.findall(r"\]\(([^)]+)\)", page)

        assert [] == [each for each in links if not (ROOT / each).exists()]
