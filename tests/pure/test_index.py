"""Static indexes: pages, links, order, reading back, conflicts."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin

import pytest

from axletree.core.errors import IntegrityError, PublishError
from axletree.package.index import IndexFile, is_links_page, merge_files, read_index, render_index, render_links

A = IndexFile(
    filename="torch_scatter-2.1.2+torch.2.13.cpu-cp311-cp311-manylinux_2_34_x86_64.whl",
    size=1234,
    sha256="a" * 64,
    requires_python=">=3.8, <4",
    metadata_sha256="b" * 64,
    upload_time="2026-01-31T12:00:00Z",
)
B = IndexFile(filename="torch_scatter-2.1.10-py3-none-any.whl", size=5, sha256="c" * 64, yanked='broken <on> "x"')
C = IndexFile(filename="Zope.Interface-1.0-py3-none-any.whl", size=6, sha256="d" * 64)


class Anchors(HTMLParser):
    """The attributes and texts of the links of a page."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_pages() -> None:
    assert sorted(render_index([A, B, C])) == [
        "simple/index.html",
        "simple/index.json",
        "simple/torch-scatter/index.html",
        "simple/torch-scatter/index.json",
        "simple/zope-interface/index.html",
        "simple/zope-interface/index.json",
    ]
    assert sorted(render_index([])) == ["simple/index.html", "simple/index.json"]


def test_html_with_all_attributes() -> None:
    page = Anchors(render_index([A, B])["simple/torch-scatter/index.html"])
    yanked, full = page.found
    assert full["href"] == f"../../{A.filename.replace('+', '%2B')}#sha256={'a' * 64}"
    assert full["data-requires-python"] == ">=3.8, <4"
    assert full["data-core-metadata"] == full["data-dist-info-metadata"] == f"sha256={'b' * 64}"
    assert yanked["data-yanked"] == 'broken <on> "x"'
    assert "data-requires-python" not in yanked
    assert A.filename in page.texts


def test_links_lead_to_the_files_beside_simple() -> None:
    href = Anchors(render_index([A])["simple/torch-scatter/index.html"]).found[0]["href"]
    address = urljoin("http://wheels.example/torch-2.13/cpu/simple/torch-scatter/", href)
    assert unquote(address.partition("#")[0]) == f"http://wheels.example/torch-2.13/cpu/{A.filename}"


def test_json_with_all_fields() -> None:
    page = json.loads(render_index([A, B])["simple/torch-scatter/index.json"])
    assert page["meta"] == {"api-version": "1.1"}
    assert page["name"] == "torch-scatter"
    assert page["versions"] == ["2.1.2+torch.2.13.cpu", "2.1.10"]
    assert page["files"][1] == {
        "filename": A.filename,
        "url": f"../../{A.filename.replace('+', '%2B')}",
        "hashes": {"sha256": "a" * 64},
        "size": 1234,
        "requires-python": ">=3.8, <4",
        "core-metadata": {"sha256": "b" * 64},
        "dist-info-metadata": {"sha256": "b" * 64},
        "upload-time": "2026-01-31T12:00:00Z",
    }
    assert page["files"][0]["yanked"] == 'broken <on> "x"'


def test_the_root_lists_projects_by_their_normal_names() -> None:
    pages = render_index([C, A])
    assert json.loads(pages["simple/index.json"])["projects"] == [{"name": "torch-scatter"}, {"name": "zope-interface"}]
    assert [anchor["href"] for anchor in Anchors(pages["simple/index.html"]).found] == [
        "torch-scatter/",
        "zope-interface/",
    ]


def test_the_order_of_the_files_changes_nothing() -> None:
    assert render_index([A, B, C]) == render_index([C, B, A])


def test_what_was_written_is_read_back() -> None:
    assert read_index(render_index([A, B])["simple/torch-scatter/index.json"]) == (B, A)


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b'{"meta": {}, "name": "a", "versions": [], "files": [{"filename": "x"}]}', b"\xff"],
)
def test_what_is_no_page(data: bytes) -> None:
    with pytest.raises(IntegrityError, match=r"^index\.json: the file is not a valid project page"):
        read_index(data)


def test_fields_of_later_versions_are_passed_over() -> None:
    page = json.loads(render_index([A])["simple/torch-scatter/index.json"])
    page["project-status"] = {"status": "active"}
    page["files"][0]["provenance"] = None
    assert read_index(json.dumps(page).encode()) == (A,)


def test_the_same_file_again_keeps_its_upload_time() -> None:
    again = IndexFile(filename=A.filename, size=A.size, sha256=A.sha256, upload_time="2030-01-01T00:00:00Z")
    assert merge_files([A], [again, B]) == (B, A)


def test_the_same_name_with_other_content() -> None:
    other = IndexFile(filename=A.filename, size=1, sha256="e" * 64)
    with pytest.raises(PublishError) as caught:
        merge_files([A], [other])
    assert f"{A.filename}: the file is already in the index with different content" in str(caught.value)
    assert "hint: change the version" in str(caught.value)


def test_times_in_another_form() -> None:
    wrong = IndexFile(filename=C.filename, size=1, sha256="d" * 64, upload_time="2026-01-31 12:00")
    with pytest.raises(IntegrityError, match="is not a valid UTC time"):
        render_index([wrong])


def test_a_name_that_no_client_takes() -> None:
    with pytest.raises(IntegrityError, match="the file name is not valid for a wheel"):
        render_index([IndexFile(filename="x.whl", size=1, sha256="d" * 64)])


S = IndexFile(filename="gizmo-2.5+label.1.tar.gz", size=7, sha256="e" * 64, requires_python=">=3.9")
L = IndexFile(
    filename="gizmo_core-2.5-py3-none-any.whl", folder="..", size=8, sha256="f" * 64, metadata_sha256="0" * 64
)


def test_sdists_and_files_of_another_root() -> None:
    pages = render_index([S, L])
    (sdist,) = Anchors(pages["simple/gizmo/index.html"]).found
    assert sdist["href"] == f"../../gizmo-2.5%2Blabel.1.tar.gz#sha256={'e' * 64}"
    assert "data-core-metadata" not in sdist
    (wheel,) = Anchors(pages["simple/gizmo-core/index.html"]).found
    assert urljoin("/sdk/at-install/simple/gizmo-core/", wheel["href"]) == f"/sdk/{L.filename}#sha256={'f' * 64}"
    assert json.loads(pages["simple/gizmo/index.json"])["versions"] == ["2.5+label.1"]
    for file in (S, L):
        assert read_index(pages[f"simple/{file.project}/index.json"]) == (file,)


@pytest.mark.parametrize("name", ["gizmo.tar.gz", "gizmo-2.5-final!.tar.gz", "gizmo-2.5.zip"])
def test_a_name_that_no_client_accepts(name: str) -> None:
    with pytest.raises(IntegrityError, match=r"the file name is not valid for an? (sdist|wheel)"):
        render_index([IndexFile(filename=name, size=1, sha256="a" * 64)])


def test_one_page_with_all_files() -> None:
    page = render_links([B, A, S, L])
    found = [unquote(str(each["href"]).partition("#")[0]) for each in Anchors(page).found]
    assert found == [S.filename, f"../{L.filename}", A.filename, B.filename]  # 2.1.2 before 2.1.10
    assert render_links([L, S, A, B]) == page
    assert is_links_page(page)
    assert is_links_page(render_links([]))
    assert not is_links_page(render_index([A])["simple/index.html"])
    assert not is_links_page(b"<!DOCTYPE html>\n<html>\n")
