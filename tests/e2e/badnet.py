#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An emulation of a bad network, for kernels without netem: a TCP proxy between clients and their server.

  badnet.py SEED HOST FIRST_PORT N SERVER_PORT LIFE

Listens on HOST:FIRST_PORT + i for client i of N. What passes is cut into segments of 1,460 bytes; each arrives 40 to
60 ms later. One in a hundred is lost: it and all behind it wait for a retransmission timeout, 200 ms, twice that when
it is lost again, and so on. The first connection is reset after 1 s, others after LIFE to 2 LIFE seconds, and all of
them on SIGUSR1. No more than 256 KB of a stream are on their way.

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
    def __init__(self, rng, host, server_port, life):
        self.rng, self.host, self.server_port, self.life = rng, host, server_port, life
        self.cut = asyncio.Event()
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

    async def until_reset(self, first):
        try:
            await asyncio.wait_for(self.cut.wait(), 1 if first else self.rng.uniform(self.life, 2 * self.life))
        except asyncio.TimeoutError:
            pass

    async def connection(self, reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection(self.host, self.server_port)
        except OSError:
            writer.transport.abort()
            return
        reset = asyncio.create_task(self.until_reset(self.did["connections"] == 0))
        self.did["connections"] += 1
        there, back = (asyncio.Queue(WINDOW // SEGMENT) for _ in range(2))
        tasks = asyncio.gather(self.depart(reader, there), self.arrive(there, far_writer),
                               self.depart(far_reader, back), self.arrive(back, writer))
        await asyncio.wait([reset, tasks], return_when=asyncio.FIRST_COMPLETED)
        self.did["reset"] += reset.done()
        reset.cancel()
        tasks.cancel()
        await asyncio.gather(tasks, return_exceptions=True)
        for end in (writer, far_writer):
            sock = end.get_extra_info("socket")
            if sock is not None and sock.fileno() >= 0:
                # No lingering: the other side gets RST, not FIN.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.transport.abort()


async def main():
    seed, host, first, n, server_port, life = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:7])
    net = BadNet(random.Random(seed), host, server_port, life)
    ended = asyncio.Event()

    def cut():
        net.cut.set()
        net.cut = asyncio.Event()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, cut)
    servers = [await asyncio.start_server(net.connection, host, first + i) for i in range(n)]
    print("ready", flush=True)
    await ended.wait()
    for server in servers:
        server.close()
    print(json.dumps(net.did), flush=True)


asyncio.run(main())
