import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest


@pytest.fixture
def serve():
    """Start a server on 127.0.0.1 that knows the paths it is given; gives its address and the paths asked for."""
    running = []

    def start(contents):
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                content = contents.get(self.path, b"")
                self.send_response(200 if self.path in contents else 404)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        httpd = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        running.append((httpd, thread))
        return f"http://127.0.0.1:{httpd.server_port}", asked

    yield start
    for httpd, thread in running:
        httpd.shutdown()
        thread.join()
        httpd.server_close()
