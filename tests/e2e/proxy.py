# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy on loopback."""
import socket
import threading


class Proxy:
    """Between a server and those who connect to it, with a copy of every byte. While `open` is cleared what is on its
    way to the server stays here."""

    def __init__(self, target):
        self.target = target
        self.streams = []  # [to_server, bytearray]
        self.connections = 0
        self.sockets = []
        self.cuts = 0
        self.open = threading.Event()
        self.open.set()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.socket.accept()[0]
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            self.connections += 1
            self.sockets += [near, far]
            for to_server, a, b in ((True, near, far), (False, far, near)):
                stream = [to_server, bytearray()]
                self.streams.append(stream)
                threading.Thread(target=self.carry, args=(stream, a, b), daemon=True).start()

    def carry(self, stream, a, b):
        cuts = self.cuts
        try:
            while True:
                data = a.recv(65536)
                if not data:
                    break
                stream[1].extend(data)
                if stream[0]:
                    self.open.wait()
                if cuts != self.cuts:
                    break
                b.sendall(data)
        except OSError:
            pass
        try:
            b.shutdown(socket.SHUT_WR)  # the other direction may still have something to carry
        except OSError:
            pass

    def cut(self):
        """End all connections; what stays here is lost."""
        self.cuts += 1
        for s in self.sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.sockets = []
        self.open.set()

    def close(self):
        self.socket.close()
