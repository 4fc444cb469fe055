"""Writing files: all of it or nothing, through links, into devices and pipes as they are, with the permissions they had."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from exactdp import files
from exactdp.files import check_target, create, is_still, parts_of, write_bytes, write_text

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links, devices and permissions are those of POSIX")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("old")
    (tmp_path / "link").symlink_to("real/file")
    (tmp_path / "chain").symlink_to("link")
    (tmp_path / "dangling").symlink_to("real/other")
    write_text(tmp_path / "chain", "new")
    write_text(tmp_path / "dangling", "new")
    assert all((tmp_path / name).is_symlink() for name in ("link", "chain", "dangling"))
    assert (tmp_path / "real" / "file").read_text() == (tmp_path / "real" / "other").read_text() == "new"
    assert names(tmp_path / "real") == ["file", "other"]


def test_a_pipe_is_written_where_it_is(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_bytes(pipe, b"x" * 200_000)
    reader.join()
    assert got == [b"x" * 200_000]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_a_pipe_whose_reader_leaves_is_an_error_that_names_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: os.close(os.open(pipe, os.O_RDONLY)))
    reader.start()
    with pytest.raises(BrokenPipeError) as caught:
        write_bytes(pipe, b"x" * 2_000_000)
    reader.join()
    assert caught.value.filename == str(pipe)


def test_a_device_is_written_where_it_is(tmp_path: Path) -> None:
    """A device of one's own, because code that is wrong would put a file in its place."""
    device = tmp_path / "full"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        device.open("wb").close()
    except OSError:
        pytest.skip("only the superuser can make a device, and only where the file system permits it")
    with pytest.raises(OSError, match="No space left") as caught:
        write_bytes(device, b"x")
    assert caught.value.filename == str(device)
    assert stat.S_ISCHR(device.lstat().st_mode)
    assert names(tmp_path) == ["full"]


def test_permissions_are_those_of_the_file_that_is_replaced_or_of_the_umask(tmp_path: Path) -> None:
    for mode in (0o600, 0o640, 0o666, 0o755):
        path = tmp_path / f"{mode:o}"
        path.write_text("old")
        path.chmod(mode)
        write_text(path, "new")
        assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)
    old = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "new")
        create(tmp_path / "shared", b"", {})
        create(tmp_path / "private", b"", {}, private=True)
    finally:
        os.umask(old)
    assert [stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("new", "shared", "private")] == [0o640, 0o640, 0o600]


@pytest.mark.parametrize("write", [check_target, lambda path: write_bytes(path, b"x")])
def test_what_cannot_be_written_is_refused_by_its_name(
    tmp_path: Path, write: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("old")
    Path("loop").symlink_to("loop")
    for path, kind in [
        ("", IsADirectoryError),
        (".", IsADirectoryError),
        (str(tmp_path), IsADirectoryError),
        ("nowhere/file", FileNotFoundError),
        ("file/file", NotADirectoryError),
        ("loop", OSError),
        ("x" * 300, OSError),
    ]:
        with pytest.raises(kind) as caught:
            write(Path(path))  # type: ignore[operator]
        assert caught.value.filename == str(Path(path))
    assert names(tmp_path) == ["file", "loop"]


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The superuser may write everything, so the system's answer is given here."""
    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(files.os, "access", lambda path, _: Path(path) != tmp_path / "file")
    with pytest.raises(PermissionError):
        write_text(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "old"


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    name = "x" * os.pathconf(tmp_path, "PC_NAME_MAX")
    write_text(tmp_path / name, "new")
    assert names(tmp_path) == [name]


def test_file_and_folder_are_on_disk_before_success_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    for name in ("fsync", "replace", "link"):
        honest = getattr(os, name)

        def watched(*given: object, name: str = name, honest: object = honest) -> None:
            is_folder = name == "fsync" and stat.S_ISDIR(os.fstat(given[0]).st_mode)  # type: ignore[arg-type]
            events.append("fsync folder" if is_folder else name)
            honest(*given)  # type: ignore[operator]

        monkeypatch.setattr(os, name, watched)
    write_text(tmp_path / "file", "new")
    assert events == ["fsync", "replace", "fsync folder"]
    events.clear()
    create(tmp_path / "other", b"new", {})
    assert events == ["fsync", "link", "fsync folder"]


def test_a_folder_in_which_one_may_write_but_not_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The superuser may look everywhere, so the refusal is played."""
    opened = os.open

    def refused(path: os.PathLike[str], flags: int, *rest: int) -> int:
        if Path(path) == tmp_path:
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *rest)

    monkeypatch.setattr(files.os, "open", refused)
    write_text(tmp_path / "written", "x")
    create(tmp_path / "created", b"x", {})
    assert names(tmp_path) == ["created", "written"]


def test_a_failure_leaves_the_old_file_and_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "write", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_text(tmp_path / "file", "new")
    assert caught.value.filename == str(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("has_links", [True, False])
def test_of_several_one_makes_a_new_file(tmp_path: Path, has_links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    if not has_links:
        monkeypatch.setattr(files.os, "link", no_links)
    made: dict[Path, files.Identity] = {}
    path = tmp_path / "file"
    create(path, b"first", made)
    others: dict[Path, files.Identity] = {}
    with pytest.raises(FileExistsError) as caught:
        create(path, b"second", others)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"first"
    assert is_still(path, made[path])
    assert not is_still(path, others[path])
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        create(tmp_path / "link", b"", {})
    assert names(tmp_path) == ["file", "link"]


def test_parts_that_a_killed_process_left_are_found(tmp_path: Path) -> None:
    (tmp_path / ".file.csv.01234567.part").write_text("")
    (tmp_path / ".other.csv.01234567.part").write_text("")
    assert [path.name for path in parts_of(tmp_path / "file.csv")] == [".file.csv.01234567.part"]
    assert parts_of(tmp_path / "nowhere" / "file.csv") == []
