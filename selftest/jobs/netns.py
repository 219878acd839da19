# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""A network namespace for each daemon, as if it were on a machine of its own, with a cable that a test can cut."""
import os
import subprocess

NETWORK = "10.213.0.0/16"


def do(*words):
    subprocess.run(words, check=True, capture_output=True)


class Namespace:
    """Namespace number @n. Its address is 10.213.n.2, and this machine's is 10.213.n.1."""

    def __init__(self, n):
        self.name, self.here = f"twheeld-{os.getpid()}-{n}", f"tw{os.getpid() % 10**6}-{n}"
        self.address = f"10.213.{n}.1"
        self.command = ["ip", "netns", "exec", self.name]
        do("ip", "netns", "add", self.name)
        try:
            do("ip", "link", "add", self.here, "type", "veth", "peer", "name", "eth0", "netns", self.name)
            do("ip", "addr", "add", f"{self.address}/30", "dev", self.here)
            do("ip", "link", "set", self.here, "up")
            for words in (["addr", "add", f"10.213.{n}.2/30", "dev", "eth0"], ["link", "set", "eth0", "up"],
                          ["link", "set", "lo", "up"]):
                do("ip", "-n", self.name, *words)
            self.rules("add table inet cut", *(
                f"add chain inet cut {way} {{ type filter hook {hook} priority 0; }}" for way, hook in self.ways.items()))
        except BaseException:
            self.remove()
            raise

    ways = {"in": "input", "out": "output"}

    def rules(self, *rules):
        do(*self.command, "nft", "; ".join(rules))

    def cut(self, *ways):
        """Drop all packets in these directions, without telling either side."""
        self.rules(*(f"add rule inet cut {way} iifname != lo drop" if way == "in" else
                     f"add rule inet cut {way} oifname != lo drop" for way in ways))

    def heal(self):
        self.rules(*(f"flush chain inet cut {way}" for way in self.ways))

    def remove(self):
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", self.here], check=False, capture_output=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def missing():
    """Returns why this host cannot make such namespaces, or None if it can."""
    try:
        with Namespace(250) as ns:
            ns.cut("in", "out")
            ns.heal()
        return None
    except FileNotFoundError as error:
        return f"there is no {error.filename}"
    except subprocess.CalledProcessError as error:
        return f"{' '.join(error.cmd)}: {error.stderr.decode().strip()}"
