import pytest
from tests.cli.running import LAW, run

WRITERS = {
    ".npz": ("spectrum", "convert", "resnet20_cifar10"), ".json": ("spectrum", "convert", "resnet20_cifar10"),
    ".txt": ("spectrum", "convert", "resnet20_cifar10"), ".html": ("report", *LAW, "--steps", "60", "-o"),
    ".csv": ("schedule", "--kind", "cosine", "--steps", "5", "--lr", "0.1", "-o"),
    ".png": ("schedule", "--kind", "cosine", "--steps", "5", "--lr", "0.1", "-o"),
}  # fmt: skip


@pytest.mark.parametrize("stem", ["a" * 200, "[a]*?", "a" * 255, "é" * 127], ids=lambda stem: ascii(stem[:2]))
@pytest.mark.parametrize("ending", WRITERS)
def test_every_command_writes_every_legal_name(tmp_path, ending, stem):
    if ending in (".html", ".png"):
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    while len(f"{stem}{ending}".encode()) > 255:
        stem = stem[:-1]
    path = tmp_path / f"{stem}{ending}"
    for force in ((), ("--force",)):
        run(*WRITERS[ending], str(path), *force)
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_size > 0
