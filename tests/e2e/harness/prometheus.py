# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus with the shipped rules, and the dashboard's queries as Grafana sends them."""

import json
import os
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from harness.control_plane import HOST
from harness.processes import Failure, free_port, wait_for

E2E = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MONITORING = os.path.join(E2E, "../../manifests/monitoring")


def dashboard_queries(rate_interval="5s"):
    """[(panel, query, may be without data)] with Grafana's variables replaced."""
    with open(os.path.join(MONITORING, "dashboard.json"), encoding="utf-8") as text:
        panels = json.load(text)["panels"]
    for panel in panels:
        for target in panel.get("targets", []):
            query = target["expr"].replace("$__rate_interval", rate_interval)
            for variable in ("$cluster", "$namespace", "$node"):
                query = query.replace(variable, ".*")
            if "$" in query:
                raise Failure(f"panel {panel['title']} has a variable nobody knows: {query}")
            yield panel["title"], query, "Empty if" in panel["description"]


def rules_for_a_test(run_dir):
    """The shipped rules, but for the two minutes over which restarts of a plugin are bridged, and the
    hour between two bills: a scrape comes every second here, not every half minute."""
    with open(os.path.join(MONITORING, "rules.yaml"), encoding="utf-8") as rules:
        text = rules.read()
    if text.count("[2m]") != 1:
        raise Failure("rules.yaml has not exactly one window of two minutes")
    path = os.path.join(run_dir, "rules.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text.replace("[2m]", "[4s]").replace("interval: 1h", "interval: 1s"))
    return path


class Prometheus:
    """targets: {job: "host:port"}. Scrapes and evaluates every second."""

    def __init__(self, processes, run_dir, targets):
        programs = subprocess.run([os.path.join(E2E, "prometheus_fetch.sh")], check=True,
                                  capture_output=True, text=True).stdout.strip()
        self.port = free_port()
        config = os.path.join(run_dir, "prometheus.yaml")
        with open(config, "w", encoding="utf-8") as out:  # JSON is YAML
            json.dump({
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [rules_for_a_test(run_dir)],
                "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [target]}]}
                                   for job, target in targets.items()]}, out)
        self.process = processes.start("prometheus", [
            os.path.join(programs, "prometheus"), f"--config.file={config}",
            f"--storage.tsdb.path={run_dir}/prometheus",
            f"--web.listen-address={HOST}:{self.port}"])
        wait_for("prometheus is ready", lambda: self.process.must_run() or self.get("/-/ready"))

    def get(self, path, **query):
        url = f"http://{HOST}:{self.port}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read()

    def api(self, path, **query):
        answer = json.loads(self.get(f"/api/v1/{path}", **query))
        if answer["status"] != "success" or answer.get("warnings"):
            raise Failure(f"{path} {query}: {answer}")
        return answer["data"]

    def query(self, expr):
        """[(labels, value)] now; a query that is wrong is a failure with Prometheus' words."""
        try:
            found = self.api("query", query=expr)
        except urllib.error.HTTPError as error:
            raise Failure(f"{expr}: {error.read().decode()}") from None
        return [(sample["metric"], float(sample["value"][1])) for sample in found["result"]]

    def rules(self):
        return [rule for group in self.api("rules")["groups"] for rule in group["rules"]]

    def alerts(self):
        """{alert: state} of those that are pending or firing."""
        return {alert["labels"]["alertname"]: alert["state"]
                for alert in self.api("alerts")["alerts"]}
