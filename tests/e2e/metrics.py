# SPDX-License-Identifier: Apache-2.0
"""Reading what agents serve for Prometheus, strictly: text format 0.0.4 and the conventions for names."""
import collections
import json
import re
import urllib.request

from federation import check

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? ([0-9.e+-]+)")


class Page:
    """types: {metric: type}; values: {(metric, labels as a sorted tuple of pairs): number}."""

    def __init__(self, text):
        self.types, self.values = {}, {}
        if not text.endswith("\n"):
            raise ValueError("no newline at the end")
        helped = current = None
        for line in text.splitlines():
            if m := re.fullmatch(rf"# HELP ({NAME}) (\S.*\S)", line):
                helped = m[1]
            elif m := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge)", line):
                current = m[1]
                if helped != current or current in self.types or (m[2] == "counter") != current.endswith("_total"):
                    raise ValueError(line)
                self.types[current] = m[2]
            elif m := SAMPLE.fullmatch(line):
                labels = tuple(sorted(tuple(x.split("=", 1)) for x in re.findall(LABEL, m[2] or "")))
                labels = tuple((k, json.loads(v)) for k, v in labels)
                key, number = (m[1], labels), float(m[3])
                if m[1] != current or key in self.values or number < 0 or len(dict(labels)) != len(labels):
                    raise ValueError(line)
                self.values[key] = number
            else:
                raise ValueError(line)
        if {name for name, _ in self.values} != set(self.types):
            raise ValueError("metrics without a sample")

    def get(self, name, **labels):
        return self.values[name, tuple(sorted(labels.items()))]

    def by(self, name, label):
        """{value of the label: number}, without zeros."""
        return {dict(labels)[label]: n for (metric, labels), n in self.values.items() if metric == name and n != 0}

    def words(self):
        """Every value of every label."""
        return {v for _, labels in self.values for _, v in labels}


def url_of(f, name):
    e = f.wait_for(name, lambda e: e.get("event") == "metrics")
    found = re.search(r"http://\S+/metrics", e["says"]) if e else None
    return found[0] if check(found, f"{name}: serves no metrics: {f.log(name)[-500:]}") else None


def scrape(url, seconds=60):
    with urllib.request.urlopen(url, timeout=seconds) as r:
        check(r.headers["Content-Type"].startswith("text/plain; version=0.0.4"), f"{r.headers['Content-Type']}")
        return Page(r.read().decode())


def logged(f, name):
    """What the audit log counts: events by name, errors by name, slots by outcome."""
    path = f.dir / f"{name}.state" / "audit.log"
    lines = [json.loads(x) for x in path.read_text().splitlines(keepends=True) if x.endswith("\n")]
    faults = [e["data"]["fault"] for e in lines if e["event"] in ("error", "errors")
              for _ in range(e["data"].get("count", 1))]
    outcomes = ["sum" if e["data"]["fault"] == "OK" else "failed" for e in lines if e["event"] == "result"]
    return [dict(collections.Counter(x)) for x in ([e["event"] for e in lines], faults, outcomes)]


def served(page):
    return [page.by(*x) for x in (("deepafl_events_total", "event"), ("deepafl_errors_total", "error"),
                                  ("deepafl_slots_total", "outcome"))]


def at_rest(f, name, url, tries=300):
    """The page and the audit log of one moment: nothing is logged while the page is fetched."""
    for _ in range(tries):
        before = logged(f, name)
        page = scrape(url)
        if logged(f, name) == before:
            return page, before
    check(False, f"{name}: never at rest")
    return None, None
