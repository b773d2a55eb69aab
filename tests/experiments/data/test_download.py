import hashlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from eigencurve.experiments.data.download import fetch
from eigencurve.experiments.data.regression import load_rows

CONTENT = b"+1 1:1\n-1 2:1\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server():
    """A server on 127.0.0.1 that knows /a4a, and breaks off in the middle of /broken."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200 if self.path in ("/a4a", "/broken") else 404)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT if self.path == "/a4a" else CONTENT[:5])

        def log_message(self, *_):
            pass

    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}", asked
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def test_fetches_once(server, tmp_path):
    url, asked = server
    for _ in range(2):
        assert fetch(f"{url}/a4a", tmp_path / "deep" / "a4a", DIGEST).read_bytes() == CONTENT
    assert asked == ["/a4a"]


def test_another_content_is_refused_and_nothing_is_written(server, tmp_path):
    url, _ = server
    with pytest.raises(ValueError, match=r"expected 0000, got " + DIGEST):
        fetch(f"{url}/a4a", tmp_path / "a4a", "0000")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_checked_and_kept(server, tmp_path):
    url, asked = server
    (tmp_path / "a4a").write_text("mine")
    with pytest.raises(ValueError, match="that of the file"):
        fetch(f"{url}/a4a", tmp_path / "a4a", DIGEST)
    assert (tmp_path / "a4a").read_text() == "mine"
    assert asked == []


@pytest.mark.parametrize("name", ["missing", "broken"])
def test_a_failed_download_leaves_nothing(server, name, tmp_path):
    url, _ = server
    with pytest.raises((ConnectionError, ValueError), match="fetch: "):
        fetch(f"{url}/{name}", tmp_path / "a4a", DIGEST)
    assert list(tmp_path.iterdir()) == []


def test_no_server_at_all(tmp_path):
    with pytest.raises(ConnectionError, match=r"cannot be reached .* by hand to"):
        fetch("http://127.0.0.1:9/a4a", tmp_path / "a4a", DIGEST)


def test_rows_come_from_a_file_or_a4a_or_scikit_learn(tmp_path, monkeypatch, server):
    (tmp_path / "mine.libsvm").write_bytes(CONTENT)
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert [load_rows(tmp_path / "mine.libsvm")[0], len(load_rows("mine.libsvm")[1])] == ["mine.libsvm", 2]
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    name, rows = load_rows()
    assert (name, len(rows), rows.num_columns) == ("breast cancer", 569, 30)
    assert (rows.dense().min(), rows.dense().max()) == (0.0, 1.0)
    (tmp_path / "a4a").write_bytes(CONTENT)
    assert load_rows()[0] == "a4a"
    url, asked = server
    (tmp_path / "a4a").unlink()
    monkeypatch.setattr("eigencurve.experiments.data.regression.A4A_URL", f"{url}/a4a")
    monkeypatch.setattr("eigencurve.experiments.data.regression.A4A_SHA256", DIGEST)
    assert len(load_rows(download=True)[1]) == 2
    assert asked == ["/a4a"]
