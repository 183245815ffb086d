#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An emulation of a bad network, for kernels without netem: a TCP proxy between clients and their server.

  badnet.py SEED HOST FIRST_PORT N SERVER_PORT

Listens on HOST:FIRST_PORT + i for client i of N. What passes is cut into segments of 1,460 bytes; each arrives 40 to
60 ms later. One in a hundred is lost: it and all behind it wait for a retransmission timeout, 200 ms, twice that when
it is lost again, and so on. The first connection is reset after 1 s, others after 2 to 10 s. No more than 256 KB of a
stream are on their way.

What that leaves out: congestion control (a loss does not slow the stream down for longer), losses of handshakes and of
acknowledgements, reordering. On SIGTERM it prints what it did, in JSON."""
import asyncio
import json
import random
import signal
import socket
import struct
import sys

SEGMENT, WINDOW = 1460, 256 << 10


class BadNet:
    def __init__(self, rng, host, server_port):
        self.rng, self.host, self.server_port = rng, host, server_port
        self.did = {"connections": 0, "segments": 0, "bytes": 0, "lost": 0, "reset": 0}

    def flight(self):
        """Seconds that a segment is under way."""
        seconds, timeout = self.rng.uniform(0.04, 0.06), 0.2
        while self.rng.random() < 0.01:
            self.did["lost"] += 1
            seconds += timeout
            timeout *= 2
        return seconds

    async def depart(self, reader, queue):
        while data := await reader.read(SEGMENT):
            self.did["segments"] += 1
            self.did["bytes"] += len(data)
            await queue.put((asyncio.get_running_loop().time() + self.flight(), data))
        await queue.put(None)

    async def arrive(self, queue, writer):
        """In the order of departure, whatever the flights took."""
        while (entry := await queue.get()) is not None:
            await asyncio.sleep(entry[0] - asyncio.get_running_loop().time())
            writer.write(entry[1])
            await writer.drain()
        writer.write_eof()

    async def connection(self, reader, writer):
        first = self.did["connections"] == 0
        self.did["connections"] += 1
        try:
            far_reader, far_writer = await asyncio.open_connection(self.host, self.server_port)
        except OSError:
            writer.transport.abort()
            return
        there, back = (asyncio.Queue(WINDOW // SEGMENT) for _ in range(2))
        tasks = asyncio.gather(self.depart(reader, there), self.arrive(there, far_writer),
                               self.depart(far_reader, back), self.arrive(back, writer))
        try:
            await asyncio.wait_for(tasks, 1 if first else self.rng.uniform(2, 10))
        except asyncio.TimeoutError:
            self.did["reset"] += 1
        except OSError:
            tasks.cancel()
        for end in (writer, far_writer):
            sock = end.get_extra_info("socket")
            if sock is not None and sock.fileno() >= 0:
                # No lingering: the other side gets RST, not FIN.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.transport.abort()


async def main():
    seed, host, first, n, server_port = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    net = BadNet(random.Random(seed), host, server_port)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    servers = [await asyncio.start_server(net.connection, host, first + i) for i in range(n)]
    print("ready", flush=True)
    await ended.wait()
    for server in servers:
        server.close()
    print(json.dumps(net.did), flush=True)


asyncio.run(main())
