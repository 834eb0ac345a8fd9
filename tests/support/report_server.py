#!/usr/bin/env python3
"""A server that takes reports, and treats them as the path says.

    report_server.py DIR [CERT KEY]

Bodies go to DIR/bodies, a line of JSON for each request to DIR/requests, and the port to DIR/port once
it listens on 127.0.0.1. With a certificate it speaks TLS.
"""
import hashlib
import json
import os
import socket
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

PLACE = sys.argv[1]
LOCK = threading.Lock()
SEEN = {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, headers=(), body=b"", length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def close(self):
        """Resets the connection."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.connection.close()

    def take(self):
        """Reads the body, keeps it and notes the request."""
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError("the sender was killed")
        path, _, query = self.path.partition("?")
        line = {"method": self.command, "path": path, "query": query, "bytes": len(body),
                "sha256": hashlib.sha256(body).hexdigest(),
                "headers": {name.lower(): value for name, value in self.headers.items()}}
        with LOCK:
            SEEN[path] = SEEN.get(path, 0) + 1
            number = sum(SEEN.values())
            with open(os.path.join(PLACE, "bodies", str(number)), "wb") as out:
                out.write(body)
            line["body"] = number
            with open(os.path.join(PLACE, "requests"), "a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
            return SEEN[path]

    def handle_report(self):
        word, _, rest = self.path.partition("?")[0].strip("/").partition("/")
        if word == "close":  # in the middle of the body
            self.rfile.read(10)
            return self.close()
        if word == "early":  # before the body
            self.close_connection = True
            self.answer(200)
            return self.close()
        times = self.take()
        if word == "stall":
            return time.sleep(600)
        if word == "silent":
            return self.close()
        if word == "lies":
            self.close_connection = True
            return self.answer(200, body=b"short", length=1000)
        if word == "endless":
            self.close_connection = True
            self.answer(200, length=1 << 40)
            while True:
                self.wfile.write(b"x" * 65536)
        if word == "flaky":  # fails as often as the path says
            return self.answer(503 if times <= int(rest.split("/")[0]) else 201)
        if word == "status":
            status, _, retry_after = rest.partition("/")
            return self.answer(int(status), [("Retry-After", unquote(retry_after))] if retry_after else ())
        if word == "redirect":
            status, _, where = rest.partition("/")
            port = self.server.server_address[1]
            to = {"same": f"{SCHEME}://{self.headers['Host']}/put/redirected", "path": "/put/redirected",
                  "host": f"{SCHEME}://localhost:{port}/put/elsewhere",
                  "http": f"http://127.0.0.1:{port}/put/elsewhere", "loop": self.path}[where]
            return self.answer(int(status), [("Location", to)])
        if word == "tattle":  # says all that it was told
            said = {"detail": f"no {self.path} {' '.join(self.headers.values())}"}
            return self.answer(403, body=json.dumps(said).encode())
        if word == "s3":
            return self.answer(403, body=b"<Error><Code>SignatureDoesNotMatch</Code><StringToSign>" +
                               self.path.encode() + b"</StringToSign></Error>")
        return self.answer(201 if self.command == "PUT" else 200)

    do_PUT = do_POST = handle_report


class Server(ThreadingHTTPServer):
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A client that has gone is no news."""


SCHEME = "https" if len(sys.argv) > 2 else "http"
os.makedirs(os.path.join(PLACE, "bodies"), exist_ok=True)
server = Server(("127.0.0.1", 0), Handler)
if SCHEME == "https":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
with open(os.path.join(PLACE, "port.new"), "w", encoding="ascii") as port_file:
    port_file.write(str(server.server_address[1]))
os.rename(os.path.join(PLACE, "port.new"), os.path.join(PLACE, "port"))
server.serve_forever()
