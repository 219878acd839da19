# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""A PostgreSQL server in a directory of its own, on a loopback port, and daemons that share it.

The system's servers are not touched. The server does not run as root: if root runs the tests, it belongs to
another user.
"""
import atexit
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

from daemon import PROGRAMS, Daemon, free_port, until
from judge import query

ROOT = os.geteuid() == 0


def programs():
    """Returns the directory of PostgreSQL's programs, those of the latest version."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    return os.path.dirname(max(found, key=lambda path: int(path.split("/")[4]), default="/usr/bin/initdb"))


# /usr/bin/psql is a script in Perl that looks for the real psql, which takes 0.1 s of CPU each time. So call that one.
os.environ["PATH"] = f"{programs()}:{os.environ['PATH']}"


class Server:
    """A server. @settings: lines of its configuration; @standby_of: the server that it follows as a standby; @network: the
    addresses from which others may connect, too; @env: variables added to its environment"""

    template = None

    def __init__(self, *settings, standby_of=None, network=None, **env):
        self.settings, self.env = settings, env
        self.dir = tempfile.mkdtemp(prefix="twheeld-pg.")
        self.port = free_port()
        self.user = "postgres" if ROOT else pwd.getpwuid(os.geteuid()).pw_name
        self.as_user = {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []} if ROOT else {}
        if ROOT:
            shutil.chown(self.dir, self.user)
        self.url = f"postgresql://{self.user}@127.0.0.1:{self.port}/postgres"
        self.process = None
        if standby_of:
            self.follow(standby_of)
        else:
            self.begin()
        if network:
            with open(f"{self.dir}/data/pg_hba.conf", "a", encoding="ascii") as file:
                print("host all all", network, "trust", file=file)
        self.configure()
        self.start()

    def begin(self):
        """Make an empty database cluster. initdb takes a second of CPU, so only the first server calls it; others copy that."""
        if not Server.template:
            Server.template = tempfile.mkdtemp(prefix="twheeld-pg-template.")
            atexit.register(shutil.rmtree, Server.template, ignore_errors=True)
            if ROOT:
                shutil.chown(Server.template, self.user)
            self.run("initdb", "-N", "-A", "trust", "-E", "UTF8", "--locale=C", "-D", f"{Server.template}/data")
        subprocess.run(["cp", "-a", f"{Server.template}/data", f"{self.dir}/data"], check=True)

    def follow(self, primary):
        """Make a copy of the primary's data, to be its standby."""
        self.run("pg_basebackup", "-R", "-X", "stream", "-c", "fast", "-D", f"{self.dir}/data",
                 "-d", primary.database())

    def configure(self):
        with open(f"{self.dir}/data/postgresql.conf", "a", encoding="ascii") as file:
            print("listen_addresses = '127.0.0.1'", f"port = {self.port}", "unix_socket_directories = ''",
                  *self.settings, sep="\n", file=file)

    def again(self, primary):
        """Start this server, which was stopped, as a new standby of the primary."""
        shutil.rmtree(f"{self.dir}/data")
        self.follow(primary)
        self.configure()
        self.start()

    def run(self, program, *args):
        subprocess.run([f"{programs()}/{program}", *args], check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, cwd=self.dir, **self.as_user)

    def start(self):
        self.process = subprocess.Popen([f"{programs()}/postgres", "-D", f"{self.dir}/data"], cwd=self.dir,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, **self.env}, **self.as_user)
        until(self.answers, 60)

    def answers(self):
        try:
            return self.query("SELECT 1")
        except subprocess.CalledProcessError:
            return False

    def query(self, sql):
        return query(self.url, sql)

    def database(self, name=""):
        """Returns the URL of another database of this server; without a name, that of the server alone."""
        return self.url.rpartition("/")[0] + (name and f"/{name}")

    def stop(self, how=signal.SIGQUIT):
        """Stop the server at once, as in a crash."""
        self.process.send_signal(how)
        self.process.wait(60)

    def promote(self):
        self.run("pg_ctl", "promote", "-s", "-w", "-D", f"{self.dir}/data")

    def cut(self, which="true"):
        """Cut all connections of daemons, or those for which the SQL condition @which is true."""
        self.query("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                   f" WHERE application_name <> 'psql' AND backend_type = 'client backend' AND {which}")

    def parts(self):
        """Returns how many parts each living daemon owns, sorted."""
        return sorted(n for _, n in self.query("SELECT n.id, count(p.id) FROM node n LEFT JOIN part p ON p.node = n.id"
                                               " GROUP BY n.id"))

    def over(self):
        """Returns how many firings are over."""
        return self.query("SELECT count(*) FROM history WHERE more = 0")[0][0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


class Node(Daemon):
    """A daemon that shares @server with others. @url: how it reaches the server, if not directly; @shared: the node to whose
    directory the jobs of all nodes write"""

    def __init__(self, server, *args, lease="2s", shared=None, url=None, **env):
        super().__init__(f"--store={url or server.url}", f"--lease={lease}", *args, **env)
        self.server = server
        self.shared = shared.dir if shared else self.dir

    def writes(self, name="out", more=""):
        """Returns a command that writes the lines of its run, as the judge wants them, at its beginning and its end. In between
        it does @more."""
        if not more:
            return [f"{PROGRAMS}/mark", f"{self.shared}/{name}", "0"]
        line = "echo $TWHEEL_JOB $TWHEEL_KEY $TWHEEL_ATTEMPT $(date +%s%N)"
        return ["/bin/sh", "-c", f"{line} >>{self.shared}/{name}; {more}; {line} end >>{self.shared}/{name}"]

    def put(self, name, **definition):
        """Put a job, and again as long as the daemon answers 503: the host may have stood still until the daemon's lease was
        over. A request that is answered so has changed nothing."""
        return until(lambda: (a := super(Node, self).put(name, **definition))[0] != 503 and a)

    def life(self):
        with open(f"{self.dir}/state/life", encoding="ascii") as file:
            return int((file.read().split() or [0])[0])     # it is just being written

    def pause(self, seconds):
        """Stop the daemon for so long, but not the processes of its runs."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)
