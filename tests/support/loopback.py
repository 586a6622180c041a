"""A server on loopback for tests: loopback.py ROOT LOG prints its port.

Understands ranges.  A file below cut/ ends after half of it the first time, one
below other/ is served with its first byte changed, below flip/ with byte 5,000, below last/ with its last one,
below longer/ with bytes behind it that no header tells (and slowly), below
bigger/ with a Content-Length that tells them; below whole/ ranges are not
understood; moved/ leads to x/; busy/ answers 503 the first time; slow/ takes its
time.
"""
import http.server
import os
import sys
import time
import urllib.parse

root, log = sys.argv[1:]
cut = set()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        where = self.headers.get("Range", "")
        with open(log, "a") as f:
            f.write("%s %s %s\n" % (self.path, where,
                                    self.headers.get("Authorization", "")))
        kind, _, name = urllib.parse.unquote(
            self.path[1:]).partition("/")
        if kind == "org":  # the Hub: org/NAME/resolve/REVISION/PATH
            name = name.split("/", 3)[-1]
        try:
            with open(os.path.join(root, name), "rb") as f:
                data = f.read()
        except OSError:
            self.send_error(404)
            return
        if kind == "moved":
            self.send_response(302)
            self.send_header("Location", "/x/" + self.path[7:])
            self.end_headers()
            return
        if kind == "busy" and self.path not in cut:
            cut.add(self.path)
            self.send_error(503)
            return
        if kind == "other":
            data = b"!" + data[1:]
        elif kind == "flip":
            data = data[:5000] + bytes([data[5000] ^ 1]) + data[5001:]
        elif kind == "last" and data:
            data = data[:-1] + bytes([data[-1] ^ 1])
        elif kind in ("longer", "bigger"):
            data += bytes(50 << 20)
        elif kind == "whole":
            where = ""
        begin = int(where[6:].rstrip("-")) if where else 0
        if where and begin >= len(data):
            self.send_error(416)
            return
        self.send_response(206 if where else 200)
        if kind != "longer":
            self.send_header("Content-Length", str(len(data) - begin))
        if where:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (
                begin, len(data) - 1, len(data)))
        self.end_headers()
        end = len(data)
        if kind == "cut" and self.path not in cut:
            cut.add(self.path)
            end = len(data) // 2
        sent = 0
        try:
            while begin < end:
                self.wfile.write(data[begin:min(end, begin + 65536)])
                sent += min(end, begin + 65536) - begin
                begin += 65536
                if kind == "slow":
                    time.sleep(0.2)
        except OSError:
            pass
        with open(log + ".sent", "a") as f:
            f.write("%s %d\n" % (self.path, sent))

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
