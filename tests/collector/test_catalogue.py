"""Libraries of skills become the catalogue: one id a skill, one skill a content, history kept, nothing silent."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.catalogue import Alias, Rename, SyncReport, sync
from cowpath.errors import BadFile
from cowpath.home import Home
from cowpath.skill import Catalogue, Skill, read_catalogue, write_catalogue

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write ``<folder>/SKILL.md`` with a frontmatter name, by default the folder's, and a description."""

    def write(folder: str, description: str = "", name: str = "", body: str = "Body") -> Path:
        path = tmp_path / folder / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        described = description or f"About {folder}."
        path.write_text(f"---\nname: {name or path.parent.name}\ndescription: {described}\n---\n{body}\n")
        return path

    return write


def warned(report: SyncReport) -> list[tuple[str, str]]:
    return [(d.code, Path(d.path).name) for d in report.diagnostics]


def test_a_first_sync_adds_every_skill_and_a_second_changes_nothing(put: Put, tmp_path: Path, home: Home) -> None:
    put("lib/plan")
    put("lib/nested/deep/commit")

    first = sync([tmp_path / "lib"], home)
    written = home.catalogue.read_bytes()
    second = sync([tmp_path / "lib"], home)

    assert (first.added, first.unchanged, first.diagnostics) == (["commit", "plan"], 0, [])
    assert (second.added, second.changed, second.removed, second.unchanged) == ([], [], [], 2)
    assert home.catalogue.read_bytes() == written


def test_a_changed_file_is_changed_and_a_vanished_one_removed(put: Put, tmp_path: Path, home: Home) -> None:
    put("lib/plan")
    gone = put("lib/commit")
    sync([tmp_path / "lib"], home)

    put("lib/plan", "Now about something else.")
    shutil.rmtree(gone.parent)
    report = sync([tmp_path / "lib"], home)

    assert (report.changed, report.removed, report.renamed) == (["plan"], ["commit"], [])
    assert list(read_catalogue(home.catalogue).skills) == ["plan"]


def test_skills_of_other_origins_stay(put: Put, tmp_path: Path, home: Home) -> None:
    put("lib/plan")
    put("other/commit")
    write_catalogue(home.catalogue, Catalogue([Skill(skill_id="imported", name="imported")]))
    sync([tmp_path / "other"], home)

    report = sync([tmp_path / "lib"], home)

    assert (report.added, report.removed, report.kept) == (["plan"], [], 2)
    assert list(read_catalogue(home.catalogue).skills) == ["commit", "imported", "plan"]


@pytest.mark.parametrize("frontmatter_too", [False, True], ids=["directory", "directory-and-name"])
def test_a_renamed_skill_keeps_its_old_names_as_aliases(
    put: Put, tmp_path: Path, home: Home, frontmatter_too: bool
) -> None:
    put("lib/plan", "Plans the work.", name="plan")
    sync([tmp_path / "lib"], home)
    shutil.move(tmp_path / "lib" / "plan", tmp_path / "lib" / "outline")
    if frontmatter_too:
        put("lib/outline", "Plans the work.", name="outline")
    report = sync([tmp_path / "lib"], home)

    shutil.move(tmp_path / "lib" / "outline", tmp_path / "lib" / "sketch")
    sync([tmp_path / "lib"], home)
    catalogue = read_catalogue(home.catalogue)

    assert (report.renamed, report.added, report.removed) == ([Rename("plan", "outline")], [], [])
    assert list(catalogue.skills) == ["sketch"]
    assert catalogue.resolve("plan") == catalogue.resolve("outline") == "sketch"


def test_two_vanished_skills_with_the_same_words_are_not_guessed_to_be_renamed(
    put: Put, tmp_path: Path, home: Home
) -> None:
    put("lib/a", "Same words.")
    put("lib/b", "Same words.")
    sync([tmp_path / "lib"], home)
    shutil.rmtree(tmp_path / "lib")
    put("lib/c", "Same words.")

    report = sync([tmp_path / "lib"], home)

    assert (report.renamed, report.removed, report.added) == ([], ["a", "b"], ["c"])


def test_report_49_the_earlier_directory_holds_the_name_and_both_are_loaded_with_a_warning(
    put: Put, tmp_path: Path, home: Home
) -> None:
    put("mine/.claude/skills/deploy", "Mine.")
    put("team/.claude/skills/deploy", "The team's.")

    sync([tmp_path / "mine/.claude/skills", tmp_path / "team/.claude/skills"], home)
    skills = read_catalogue(home.catalogue).skills

    assert {skill_id: skill.description for skill_id, skill in skills.items()} == {
        "deploy": "Mine.",
        "deploy@team": "The team's.",
    }
    assert [[d.code for d in skill.diagnostics] for skill in skills.values()] == [["shadows"], ["shadowed"]]


def test_report_6_the_same_content_elsewhere_is_another_name_not_another_skill(
    put: Put, tmp_path: Path, home: Home
) -> None:
    put("a/deploy", "Ships.", name="deploy")
    copy = put("b/deploy-copy", "Ships.", name="deploy")
    put("c/deploy", "Ships.", name="deploy")

    report = sync([tmp_path / "a", tmp_path / "b", tmp_path / "c"], home)
    catalogue = read_catalogue(home.catalogue)

    assert list(catalogue.skills) == ["deploy"]
    assert catalogue.resolve("deploy-copy") == "deploy"
    assert report.aliases == [Alias("deploy-copy", "deploy", str(copy))]
    assert sorted(code for code, _ in warned(report)) == ["name_differs", "same_content", "same_content"]


def test_a_plugin_gives_its_skills_its_name(put: Put, tmp_path: Path, home: Home) -> None:
    put("ops/skills/deploy", name="ship-it")
    manifest = tmp_path / "ops/.claude-plugin/plugin.json"
    manifest.parent.mkdir()
    manifest.write_text('{"name": "ops-kit", "version": "1.0.0"}')

    sync([tmp_path / "ops/skills"], home)
    catalogue = read_catalogue(home.catalogue)

    assert list(catalogue.skills) == ["ops-kit:deploy"]
    assert catalogue.skills["ops-kit:deploy"].plugin == "ops-kit"
    assert catalogue.resolve("ops-kit:ship-it") == "ops-kit:deploy"
    assert catalogue.resolve("deploy") == "deploy"


def test_report_47_links_are_followed_once_and_loops_end(put: Put, tmp_path: Path, home: Home) -> None:
    put("lib/plan")
    put("outside/commit")
    (tmp_path / "lib/a-link").symlink_to("plan")
    (tmp_path / "lib/save").symlink_to(tmp_path / "outside/commit")
    (tmp_path / "lib/loop").symlink_to("..")
    (tmp_path / "lib/self").symlink_to("self")
    (tmp_path / "lib/nowhere").symlink_to("not-there")

    report = sync([tmp_path / "lib"], home)
    catalogue = read_catalogue(home.catalogue)

    assert list(catalogue.skills) == ["plan", "save"]
    assert [catalogue.resolve(name) for name in ("a-link", "commit")] == ["plan", "save"]
    assert sorted(warned(report)) == [
        ("dangling_link", "nowhere"),
        ("dangling_link", "self"),
        ("link_loop", "loop"),
        ("name_differs", "SKILL.md"),
    ]


def test_a_file_name_in_the_wrong_case_is_ignored_with_a_warning(put: Put, tmp_path: Path, home: Home) -> None:
    put("lib/plan").rename(tmp_path / "lib/plan/Skill.md")

    report = sync([tmp_path / "lib"], home)

    assert (report.skills, warned(report)) == (0, [("wrong_file_name", "Skill.md")])


def test_what_lies_too_deep_or_beyond_the_bound_is_said(put: Put, tmp_path: Path, home: Home) -> None:
    put("lib/1/2/3/4/5/six")
    put("lib/1/2/3/4/5/6/seven")

    deep = sync([tmp_path / "lib"], home)
    bounded = sync([tmp_path / "lib"], home, most_directories=3)

    assert (deep.added, [code for code, _ in warned(deep)]) == (["six"], ["too_deep"])
    assert [code for code, _ in warned(bounded)] == ["too_many_directories"]


def test_a_skills_own_material_is_not_searched_for_skills(put: Put, tmp_path: Path, home: Home) -> None:
    put("lib/maker")
    put("lib/maker/templates/example")
    put("lib/maker/part")

    assert sync([tmp_path / "lib"], home).added == ["maker", "part"]


def test_a_directory_that_is_not_there_changes_nothing(put: Put, tmp_path: Path, home: Home) -> None:
    put("lib/plan")
    sync([tmp_path / "lib"], home)

    with pytest.raises(BadFile, match="no directory"):
        sync([tmp_path / "lib", tmp_path / "unmounted"], home)

    assert list(read_catalogue(home.catalogue).skills) == ["plan"]


CASES = [
    "plain-ok",
    "colon-desc",
    "flow-hint",
    "folded",
    "literal",
    "bom",
    "crlf",
    "cr-only",
    "no-name",
    "no-desc",
    "no-frontmatter",
    "unclosed",
    "close-at-eof",
    "dashes-in-body",
    "empty",
    "Upper-Case",
    "dir-mismatch",
    "dup-a/skills/deploy",
    "dup-b/skills/deploy",
    "long-name-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "long-desc",
    "unicode-naïve",
    "desc-number",
    "desc-list",
    "name-yes",
    "name-date",
    "tab-indent",
    "tools-string",
    "tools-list",
    "metadata-int",
    "related",
    "dup-key",
    "anchor-bomb",
    "python-tag",
    "latin1",
    "nul",
    "html-desc",
]

LOADED = {"load": True, "load+warn": True, "load+warn(shadowed)": True, "skip+diagnostic": False}


@pytest.fixture
def corpus(samples: Path, tmp_path: Path) -> Path:
    """A copy of the corpus of odd skill files, with its symlinks."""
    folder = tmp_path / "corpus"
    shutil.copytree(samples / "skills_corpus", folder)
    folder.chmod(0o755)
    subprocess.run(["sh", str(folder / "make_links.sh"), str(folder)], check=True)
    return folder.resolve()


@pytest.mark.data
@pytest.mark.parametrize("case", CASES)
def test_every_file_of_the_corpus_behaves_as_it_says(case: str, corpus: Path, home: Home) -> None:
    expected = json.loads((corpus / "expected.json").read_text())[case]["expect"]

    report = sync([corpus], home)
    path = str(corpus / case / "SKILL.md")
    skills = [skill for skill in read_catalogue(home.catalogue).skills.values() if skill.path == path]
    found = [d for d in report.diagnostics if d.path == path]

    assert len(skills) == LOADED[expected]
    assert {d.level for d in found} == ({"warning"} if "warn" in expected else {"error"} if not skills else set())
    assert [set(skill.diagnostics) for skill in skills] == [set(found) for _ in skills]
    assert (expected == "load+warn(shadowed)") == any(d.code in {"shadowed", "shadows"} for d in found)


@pytest.mark.data
def test_the_corpus_has_no_case_that_is_not_tested(corpus: Path) -> None:
    others = {
        "lower (skill.md)",
        "link-dir -> plain-ok",
        "link-dangling",
        "link-loop -> .",
        "link-file/SKILL.md -> ../plain-ok/SKILL.md",
        "cmd.md-style/flat-skill.md",
    }

    assert set(json.loads((corpus / "expected.json").read_text())) == {*CASES, *others}


@pytest.mark.data
def test_the_corpus_links_and_the_wrong_file_name_behave_as_they_say(corpus: Path, home: Home) -> None:
    report = sync([corpus], home)
    catalogue = read_catalogue(home.catalogue)
    by_path = {name: [d.code for d in report.diagnostics if d.path == str(corpus / name)] for name in (
        "lower/skill.md", "link-dir", "link-dangling", "link-loop", "link-file/SKILL.md",
    )}  # fmt: skip

    assert by_path == {
        "lower/skill.md": ["wrong_file_name"],
        "link-dir": [],
        "link-dangling": ["dangling_link"],
        "link-loop": ["link_loop"],
        "link-file/SKILL.md": ["name_differs", "same_content"],
    }
    assert "lower" not in catalogue
    assert [catalogue.resolve(name) for name in ("link-dir", "link-file")] == ["plain-ok", "plain-ok"]
    assert sum(skill.description.startswith("Parses logs") for skill in catalogue.skills.values()) == 1
    assert {"deploy", "deploy@dup-b"} <= set(catalogue.skills)
    assert (len(catalogue), report.skipped) == (34, 3)


def test_a_catalogue_that_cannot_be_read_is_set_aside_and_begun_anew(tmp_path: Path, home: Home) -> None:
    folder = tmp_path / "skills" / "deploy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: deploy\ndescription: Ship a build.\n---\n")
    home.root.mkdir()
    home.catalogue.write_text("{half a line")

    report = sync([tmp_path / "skills"], home)

    assert report.added == ["deploy"]
    assert [d.code for d in report.diagnostics] == ["unreadable_catalogue"]
    assert home.catalogue.with_name("catalogue.jsonl.unreadable-1").read_text() == "{half a line"
