#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a server and a client, scraped while a rogue makes errors and a client is killed: they are what the audit
log says, and name nothing but parties, events and errors. Hostile requests do no harm."""
import collections
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from federation import Trap, check, finish, has_seal, seed
from metrics import at_rest, scrape, served, url_of
from proxy import Proxy
from rogue import Even, relay, start_by

deepafl, agent, digits, rogue, root = sys.argv[1:6]
n_seed = seed()
rng = random.Random(n_seed)


def quick(text):
    """Whoever does not answer is waited for, but not for long."""
    for a, b in (("upload: 120", "upload: 10"), ("sign: 30", "sign: 4"), ("tries: 2", "tries: 1")):
        assert a in text, a
        text = text.replace(a, b)
    return text


def other_cell(f, name):
    """A client in another cell than this one."""
    text = (f.dir / "run.yaml").read_text()
    cells = dict(re.findall(r'key: "(\w+) .*\n +cell: (\d+)', text))
    return rng.choice([n for n in f.names if cells[n] != cells[name]])


class Held(threading.Event):
    """Set until an agent logs this event, which it does before it sends anything of it."""

    def __init__(self, f, name, event):
        super().__init__()
        self.f, self.name, self.event = f, name, event
        self.set()

    def wait(self, timeout=None):
        if f'"event":"{self.event}"' in self.f.log(self.name):
            self.clear()
        return super().wait(timeout)


# ---- hostile requests ----

def ask(url, request):
    """Send these bytes; the first line of the answer, '' when there is none."""
    at = urlsplit(url)
    with socket.create_connection((at.hostname, at.port), timeout=30) as s:
        try:
            s.sendall(request)
            return s.makefile("rb").readline().decode(errors="replace").strip()
        except TimeoutError:
            return "nothing for 30 s"
        except OSError:
            return ""  # it was cut


def wrong_requests(url):
    host = b" HTTP/1.1\r\nHost: x\r\n"
    for request, want in (
            (b"GET /metrics" + host + b"\r\n", "200"), (b"HEAD /metrics" + host + b"\r\n", "200"),
            (b"GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200"), (b"GET /" + host + b"\r\n", "404"),
            (b"GET /metrics/" + host + b"\r\n", "404"), (b"GET /../metrics" + host + b"\r\n", "404"),
            (b"GET //metrics" + host + b"\r\n", "404"), (b"HEAD /x" + host + b"\r\n", "404"),
            (b"POST /metrics" + host + b"Content-Length: 5\r\n\r\nhello", "405"),
            (b"POST /metrics" + host + b"Content-Length: 999999999999\r\n\r\n", "405"),
            (b"PUT /metrics" + host + b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\n", "405"),
            (b"DELETE /metrics" + host + b"\r\n", "405"), (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "405"),
            (b"GET /metrics" + host + b"X: " + b"a" * 100000 + b"\r\n\r\n", "431"),
            (b"GET /" + b"a" * 100000 + host + b"\r\n", "4"), (b"GET /metrics" + host + b"X: y\r\n" * 5000, "431"),
            (b"GET /metrics HTTP/1.1\r\n\r\n", "400"),
            (os.urandom(5000) + b"\r\n\r\n", None), (b"\0" * 20000, None)):
        got = ask(url, request)
        # Somebody who goes on sending may find the connection reset before the answer.
        fits = want is None or re.match(rf"HTTP/1\.[01] {want}", got) or (len(request) > 8192 and got == "")
        check(fits and not (want is None and " 200 " in got), f"{request[:60]}: {got!r} instead of {want}")
    at = urlsplit(url)
    c = http.client.HTTPConnection(at.hostname, at.port, timeout=30)
    c.request("HEAD", "/metrics")
    r = c.getresponse()
    check(int(r.headers["Content-Length"]) > 1000 and r.read() == b"", "HEAD has a body, or no length")
    c.request("POST", "/metrics", body=b"x")
    check(c.getresponse().headers["Allow"] == "GET, HEAD", "405 without Allow")


def open_files(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


def many_connections(url, process):
    """Silent ones, ones that say a letter at a time, ones that do not read: others are served at once, and they end."""
    at = urlsplit(url)
    before, sockets = open_files(process), []
    for i in range(200):
        s = socket.create_connection((at.hostname, at.port), timeout=60)
        if i % 4 == 1:
            s.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        elif i % 4 == 2:
            s.sendall(b"\x16\x03\x01\x02\x00\x01\x00")  # TLS
        elif i % 4 == 3:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            s.sendall(b"GET /metrics HTTP/1.1\r\n")
        sockets.append(s)
    stop = threading.Event()

    def drip():
        while not stop.wait(0.3):
            for s in sockets:
                try:
                    s.send(b"a")
                except OSError:
                    pass

    dripping = threading.Thread(target=drip, daemon=True)
    dripping.start()
    scrape(url)
    most = open_files(process)
    check(most - before <= 70, f"{most - before} connections are held")
    end = time.monotonic() + 60
    while open_files(process) > before + 1 and time.monotonic() < end:
        time.sleep(0.1)
    left = open_files(process) - before
    check(left <= 1, f"{left} connections live for ever")
    stop.set()
    dripping.join()
    for s in sockets:
        s.close()


# ---- the run ----

def judge_words(f, page, name, role):
    """Nothing is named that may not be: labels have words of a fixed set, names of the roster and the run's id."""
    run = json.loads((f.dir / f"{name}.state" / "audit.log").read_text().splitlines()[-1])["run"]
    faults = re.findall(r"X\(([A-Z_]+), ([A-Z]+), ", (Path(root) / "protocol" / "fault.h").read_text())
    events = re.findall(r"DAFL_EVENT_([A-Z_]+),", (Path(root) / "protocol" / "effect.h").read_text())
    phases = [word for line in (Path(root) / "agents" / "watch.c").read_text().splitlines() if "phase = " in line
              for word in re.findall(r'"(.*?)"', line)]
    version = subprocess.run([agent, "--version"], capture_output=True, text=True).stdout.split()[1]
    allowed = {*f.names, *f.others, role, run, version, *phases, "sum", "failed", "cast", "uploaded", "survived",
               "unnamed", "stale", "malformed", *(e.lower() for e in events),
               *(("W_" if kind == "WARNING" else "E_") + x for x, kind in faults)}
    check(len(faults) > 20 and len(events) > 15 and len(phases) > 5, "the lists of words are not found")
    check(page.words() <= allowed, f"{name}: also names {page.words() - allowed}")
    check(page.get("deepafl_agent_info", party=name, role=role, run=run, version=version) == 1, f"{name}: info")


def judge_start(f, urls):
    for name, role in (("server", "server"), ("site0", "client")):
        page, log = at_rest(f, name, urls[name])
        if page is None:
            continue
        check(served(page) == log, f"{name}, on the way: {served(page)} served, {log} logged")
        judge_words(f, page, name, role)
        check(page.get("deepafl_run_finished") == 0 and page.get("deepafl_layers") == f.layers, f"{name}: is over")
        rss = int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{f.processes[name].pid}/status").read_text())[1]) * 1024
        check(0.5 < page.get("process_resident_memory_bytes") / rss < 2, f"{name}: memory")
        # The phases fill the time since the start.
        spent = sum(page.by("deepafl_phase_seconds_total", "phase").values())
        age = time.time() - page.get("process_start_time_seconds")
        now = page.by("deepafl_phase", "phase")
        check(age - 60 < spent <= age + 1 and len(now) == 1, f"{name}: {spent} of {age} s, {now}")
        yield name, page


def training():
    with Even((deepafl, agent), digits, 6, 3, layers=2, width=16, rng=rng, edit=quick) as f:
        victim = other_cell(f, "site0")
        f.start("server", "--metrics", "0")
        urls = {"server": url_of(f, "server")}
        check(f.wait_for("server", lambda e: e.get("event") == "listening"), "the server does not listen")
        early = scrape(urls["server"])
        check(early.by("deepafl_peer_connected", "peer") == {} and early.get("deepafl_clients") == 6, "too early")
        r, port = relay(rogue, f, "who", n_seed, "site0", "site1")
        proxy = Proxy(f.port)
        proxy.open = Held(f, victim, "upload")
        start_by(f, "site0", port, "--metrics", "[::1]:0")
        start_by(f, victim, proxy.port)
        for name in set(f.names) - {"site0", victim}:
            f.start(name)
        urls["site0"] = url_of(f, "site0")
        if None in urls.values():
            return
        check(urlsplit(urls["server"]).hostname == "127.0.0.1" and urlsplit(urls["site0"]).hostname == "::1", f"{urls}")
        # Soon all wait for an upload that does not come.
        check(f.wait_for(victim, lambda e: e.get("event") == "upload"), f"no upload: {f.log('server')[-1000:]}")
        pages = dict(judge_start(f, urls))
        if len(pages) < 2:
            return
        check(set(pages["server"].by("deepafl_peer_connected", "peer")) == set(f.names), "not all are connected")
        check(pages["site0"].by("deepafl_peer_connected", "peer") == {"server": 1}, "site0 does not see the server")
        for url in urls.values():
            wrong_requests(url)
        many_connections(urls["server"], f.processes["server"])
        check(f.wait_for("server", lambda e: e.get("event") == "result" and "error" in e), "no slot fails")
        f.kill(victim)
        proxy.cut()
        judge_end(f, urls["server"], victim, pages)
        f.processes["server"].send_signal(signal.SIGTERM)  # it waits no longer for one that was killed
        codes = f.wait(90)
        codes.pop(victim)
        check(set(codes.values()) == {0}, f"exit codes {codes}: {f.log('server')[-1500:]}")
        sent = r.report()
        check(sent["to_server"]["forged"] > 0, f"the rogue did nothing: {sent}")
        audit = f.audit()
        check(audit.returncode == 0, f"audit: {audit.stdout[-500:]}")


def key_holder():
    """The third role, when it has opened a sum and its answer is held back."""
    if not has_seal(deepafl, digits):
        print("no key holder: built without Microsoft SEAL")
        return
    with Even((deepafl, agent), digits, 3, 3, layers=1, width=16, rng=rng, seal=True) as f:
        proxy = Proxy(f.port)
        proxy.open = Held(f, "holder", "open")
        start_by(f, "holder", proxy.port, "--metrics", ":0")
        for name in ("server", *f.names):
            f.start(name)
        url = url_of(f, "holder")
        check(f.wait_for("holder", lambda e: e.get("event") == "open"), f"nothing is opened: {f.log('holder')[-1000:]}")
        page, log = at_rest(f, "holder", url)
        if page is None:
            return
        check(served(page) == log and log[0]["key"] == 1, f"holder: {served(page)} served, {log} logged")
        judge_words(f, page, "holder", "keyholder")
        check(page.by("deepafl_peer_connected", "peer") == {"server": 1}, "the holder does not see the server")
        proxy.cut()


def judge_end(f, url, victim, pages):
    """The server stays a while for the one that was killed."""
    check(f.wait_for("server", lambda e: e.get("event") == "done", 90), f"no end: {f.log('server')[-1500:]}")
    page, log = at_rest(f, "server", url)
    if page is None:
        return
    check(served(page) == log, f"at the end: {served(page)} served, {log} logged")
    events, faults, outcomes = log
    check(outcomes.get("failed", 0) > 0 and len(faults) >= 2, f"nothing went wrong: {outcomes}, {faults}")
    check(outcomes["sum"] == page.get("deepafl_questions"), f"{outcomes}")
    check(page.get("deepafl_run_finished") == 1 and page.get("deepafl_run_failed") == 0, "not finished")
    check(page.get("deepafl_layer") == f.layers and page.get("deepafl_slot") == events["model"], "where it is")
    check(page.by("deepafl_phase", "phase") == {"over": 1}, f"{page.by('deepafl_phase', 'phase')}")
    check(victim not in page.by("deepafl_peer_connected", "peer"), f"{victim} is still connected")
    lines = [json.loads(x) for x in (f.dir / "server.state" / "audit.log").read_text().splitlines()]
    cast = {e["slot"]: len(e["data"]["a"]) for e in lines if e["event"] == "cast"}
    survived = {e["slot"]: len(e["data"]["u3"]) for e in lines if e["event"] == "surv"}
    n = survived[events["model"]]
    check(page.by("deepafl_cohort_clients", "stage") == {"cast": cast[events["model"]], "uploaded": n, "survived": n},
          f"{page.by('deepafl_cohort_clients', 'stage')} served, {cast}, {survived} logged")
    came = collections.Counter(e["slot"] for e in lines if e["event"] == "upload")
    lost = sum(n - survived.get(slot, came[slot]) for slot, n in cast.items())
    check(page.get("deepafl_dropouts_total") == lost > 0,
          f"{page.get('deepafl_dropouts_total')} dropouts, {cast}, {survived} logged")
    # Counters only rise, and what one end has sent has come to the other.
    for (name, labels), n in pages["server"].values.items():
        check(not name.endswith("_total") or page.values[name, labels] >= n, f"{name} {labels} falls")
    came, went = (page.get(f"deepafl_{x}_bytes_total") for x in ("received", "sent"))
    check(came > pages["site0"].get("deepafl_sent_bytes_total") > 0 and went > 0, f"{came}, {went} bytes")
    judge_documents(page)
    print(f"{outcomes}, errors {faults}, {came:.0f} bytes in, {went:.0f} out", flush=True)


def judge_documents(page):
    """Whatever the dashboard asks for is served, with the labels that it asks for; the guide lists what is served."""
    board = json.loads((Path(root) / "share" / "grafana" / "deepafl.json").read_text())
    asked = [t["expr"] for p in board["panels"] for t in p["targets"]]
    asked += [v["query"]["query"] for v in board["templating"]["list"] if v["type"] == "query"]
    known = collections.defaultdict(lambda: {"instance", "job"})  # which Prometheus adds
    for name, labels in page.values:
        known[name] |= set(dict(labels))
    named = set()
    for expr in asked:
        names = re.findall(r"\b(?:deepafl|process)_\w+", expr)
        wanted = re.findall(r"(\w+)=~?\"", expr) + re.split(r"\W+", ",".join(re.findall(r"by \((.*?)\)", expr)))
        check(names and set(names) <= set(page.types), f"dashboard: {expr} is not served")
        for label in filter(None, wanted):
            check(any(label in known[n] for n in names), f"dashboard: {expr}: there is no {label}")
        for name, value in re.findall(r'(\w+)="(\w+)"', expr):
            check(any((name, value) in labels for n, labels in page.values if n in names), f"dashboard: {expr}")
        named |= set(names)
    check(len(named) > 15, f"the dashboard asks for {named} only")
    rows = re.findall(r"^\| (`(?:deepafl|process)_.*?) \|", (Path(root) / "docs" / "operations.md").read_text(), re.M)
    listed = re.findall(r"`(\w+)`", " ".join(rows))
    check(sorted(listed) == sorted(page.types), f"docs/operations.md: {sorted(set(listed) ^ set(page.types))}")


# ---- addresses ----

def refused(f, name, address, says):
    done = subprocess.run(f.command(name, "--metrics", address), capture_output=True, text=True, timeout=60)
    check(done.returncode == 2 and says in done.stderr and "--metrics" in done.stderr,
          f"--metrics {address!r}: exit code {done.returncode}: {done.stderr}")
    check(not (f.dir / f"{name}.state").exists(), f"--metrics {address!r}: {name} has begun")


def addresses():
    with Even((deepafl, agent), digits, 6, 3, layers=1, width=16, rng=rng) as f:
        with Trap(f) as trap, socket.create_server(("127.0.0.1", 0)) as taken:
            refused(f, "site1", str(taken.getsockname()[1]), "in use")
            refused(f, "site1", f":{taken.getsockname()[1]}", "in use")
            for wrong in ("", ":", "x", "65536", "-1", "+1", "1 ", "x:1", "127.0.0.1", "127.0.0.1:", "::1:9400", "[]:1",
                          "[::1]", "[::1:1", "example.org:9400", "1.2.3:x", "127.0.0.1:9400/metrics"):
                refused(f, "site1", wrong, "ADDRESS:PORT")
            refused(f, "site1", "192.0.2.1:0", "assign")
            check(not trap.caught(), "a client without its port has connected")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            refused(f, "server", str(taken.getsockname()[1]), "in use")
        for i, (address, host, warns) in enumerate((
                ("localhost:0", "127.0.0.1", False), (":0", "127.0.0.1", False), ("0.0.0.0:0", "0.0.0.0", True),
                ("[::]:0", "::", True))):
            # Open to other machines only where there are none.
            alone = ["unshare", "-rn"] if warns else []
            if alone and subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
                print("open addresses not checked: no network namespaces")
                break
            name = f"site{i}"
            f.start(name, "--metrics", address, prefix=alone)
            url = url_of(f, name)
            said = next((e["says"] for e in f.events(name) if e.get("event") == "metrics"), "")
            check(url and urlsplit(url).hostname == host, f"{address}: {url}")
            check(("warning" in said) == warns, f"{address}: {said}")
            f.kill(name, signal.SIGTERM)


training()
key_holder()
addresses()
finish()
