# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""A TCP proxy between daemons and a server. It does to connections what bad networks do.

One thread serves all connections. Attributes, which any thread may set, say what the proxy does:

    delay       it passes on each piece of data so many seconds after it has arrived
    rate        it passes on so many bytes a second in each direction of a connection; 0: as many as come
    deaf        it passes on nothing in these directions: a set of "up" (to the server) and "down"
    eat         with this probability it swallows an answer and cuts the connection: so the client cannot know whether the
                server has done what the client asked for

So do the calls cut() and half_close().
"""
import collections
import random
import selectors
import socket
import threading
import time

CHUNK = 65536


class Way:
    """One direction of a connection: the data that was read from one socket and not yet written to the other."""

    def __init__(self, source, sink, name):
        self.source, self.sink, self.name = source, sink, name
        self.waiting, self.ended = collections.deque(), False    # of (when to write, bytes); no bytes stand for the end
        self.busy_until = 0

    def read(self, delay, rate):
        """Returns False if the connection is broken."""
        try:
            data = self.source.recv(CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.busy_until = max(time.monotonic() + delay, self.busy_until) + (len(data) / rate if rate else 0)
        self.waiting.append((self.busy_until, data))
        self.ended |= not data
        return True

    def write(self):
        """Returns False if the connection is broken."""
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            when, data = self.waiting.popleft()
            try:
                if not data:
                    self.sink.shutdown(socket.SHUT_WR)
                    continue
                n = self.sink.send(data)
            except BlockingIOError:
                n = 0
            except OSError:
                return False
            if n < len(data):
                self.waiting.appendleft((when, data[n:]))
                return True
        return True


class Pair:
    """A connection through the proxy."""

    def __init__(self, client, server):
        self.sockets = client, server
        self.ways = Way(client, server, "up"), Way(server, client, "down")

    def close(self):
        for s in self.sockets:
            s.close()


class Proxy:
    """A proxy for the server at @port of loopback. It listens at the port @listens."""

    def __init__(self, port, seed=1):
        self.port, self.rng = port, random.Random(seed)
        self.delay, self.rate, self.deaf, self.eat, self.eaten, self.pairs, self.todo = 0, 0, frozenset(), 0, 0, [], []
        self.lock, self.stopping = threading.Lock(), False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.listens = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join()

    def url(self, url):
        """Returns the server's URL with the port of this proxy in it."""
        return url.replace(f":{self.port}/", f":{self.listens}/")

    def cut(self):
        """Break all connections. Both sides learn of it."""
        self.call(lambda: [self.drop(pair) for pair in self.pairs[:]])

    def half_close(self, name):
        """End one direction of all connections; the other one stays open."""
        def end():
            for pair in self.pairs:
                way = pair.ways[name == "down"]
                way.waiting.append((0, b""))
                way.ended = True
        self.call(end)

    def heal(self):
        self.delay, self.deaf, self.eat = 0, frozenset(), 0

    def call(self, fn):
        """Let the proxy's thread call fn() soon."""
        with self.lock:
            self.todo.append(fn)

    def drop(self, pair):
        pair.close()
        self.pairs.remove(pair)

    def accept(self):
        try:
            client, _ = self.listener.accept()
        except OSError:
            return
        try:
            server = socket.create_connection(("127.0.0.1", self.port), 5)
        except OSError:
            client.close()
            return
        for s in (client, server):
            s.setblocking(False)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pairs.append(Pair(client, server))

    def is_eaten(self, way):
        """Decide whether to swallow what has just come from the server."""
        return way.name == "down" and way.waiting and self.eat and self.rng.random() < self.eat

    def move(self, pair, way, readable):
        if way.name in self.deaf:
            return True
        if way.source in readable and not way.ended:
            if not way.read(self.delay, self.rate):
                return False
            if self.is_eaten(way):
                self.eaten += 1
                return False
        return way.write()

    def turn(self):
        with self.lock:
            todo, self.todo = self.todo, []
        for fn in todo:
            fn()
        with selectors.DefaultSelector() as selector:
            selector.register(self.listener, selectors.EVENT_READ)
            for pair in self.pairs:
                for way in pair.ways:
                    if not way.ended and way.name not in self.deaf:
                        selector.register(way.source, selectors.EVENT_READ)
            readable = {key.fileobj for key, _ in selector.select(0.005 if self.busy() else 0.05)}
        if self.listener in readable:
            self.accept()
        for pair in self.pairs[:]:
            if not all(self.move(pair, way, readable) for way in pair.ways) or self.is_over(pair):
                self.drop(pair)

    def busy(self):
        return any(way.waiting for pair in self.pairs for way in pair.ways)

    @staticmethod
    def is_over(pair):
        return all(way.ended and not way.waiting for way in pair.ways)

    def serve(self):
        while not self.stopping:
            self.turn()
        for pair in self.pairs:
            pair.close()
        self.listener.close()
