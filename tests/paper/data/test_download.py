import hashlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from paper.data.download import fetch

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
