# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy on loopback."""
import socket
import threading


class Proxy:
    """Between a server and those who connect to it, with a copy of every byte. While `open` is cleared what is on its
    way to the server stays here. spoil(number of the connection, to_server, offset, data) gives what is passed on
    instead, or None to pass it as it is."""

    def __init__(self, target, spoil=lambda *_: None):
        self.target, self.spoil = target, spoil
        self.streams = []  # [to_server, bytearray]
        self.connections = 0
        self.length = {True: 0, False: 0}  # of the last connection, by direction
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
            number, self.connections = self.connections, self.connections + 1
            self.sockets += [near, far]
            ends = [2]
            for to_server, a, b in ((True, near, far), (False, far, near)):
                stream = [to_server, bytearray()]
                self.streams.append(stream)
                threading.Thread(target=self.carry, args=(number, stream, a, b, ends), daemon=True).start()

    def carry(self, number, stream, a, b, ends):
        to_server, copy = stream
        cuts = self.cuts
        try:
            while data := a.recv(65536):
                at = len(copy)
                copy.extend(data)
                self.length[to_server] = len(copy)
                if to_server:
                    self.open.wait()
                if cuts != self.cuts:
                    break
                changed = self.spoil(number, to_server, at, data)
                b.sendall(data if changed is None else changed)
        except OSError:
            pass
        try:
            b.shutdown(socket.SHUT_WR)  # the other direction may still have something to carry
        except OSError:
            pass
        ends[0] -= 1
        if ends[0] == 0:
            a.close()
            b.close()

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
