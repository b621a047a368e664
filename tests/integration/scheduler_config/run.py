#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`doctor --scheduler-config` calls those files wrong with which kube-scheduler does not start: files.txt.

    run.py BUILD             doctor, beside Kubernetes 1.20 and 1.37
    run.py BUILD SCHEDULER   also what that program does with each; KUBE_VERSION is its release
"""

import http.server
import os
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ACCOUNT = ("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
           "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n")
COMPLETE = """apiVersion: kubescheduler.config.k8s.io/VERSION
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: FOLDER/kubeconfig
leaderElection:
  leaderElect: true
  leaseDuration: 12s
  renewDeadline: 8s
percentageOfNodesToScore: 100
extenders:
- urlPrefix: http://127.0.0.1:29999/gpushare-scheduler
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  bindVerb: bind
  weight: 1
  enableHTTPS: false
  httpTimeout: 10s
  nodeCacheCapable: true
  ignorable: false
  managedResources:
  - name: aliyun.com/gpu-mem
    ignoredByScheduler: false
"""


# By which minor releases.
READ = {"v1beta1": range(19, 23), "v1beta2": range(22, 28), "v1beta3": range(23, 29), "v1": range(25, 40)}


class Version(http.server.BaseHTTPRequestHandler):
    """An API server that says its release, and nothing else."""

    def do_GET(self):
        body = b'{"gitVersion":"v%s"}' % self.server.release.encode() if self.path == "/version" else b"{}"
        self.send_response(200 if self.path == "/version" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def rows():
    """(starts, text, what doctor says besides) of each line."""
    with open(os.path.join(HERE, "files.txt"), encoding="utf-8") as table:
        for line in table:
            if line.startswith("#"):
                continue
            outcome, _, rest = line.rstrip("\n").partition("  " if line.startswith("starts") else "    ")
            change, _, says = rest.partition(" ## ")
            text = COMPLETE
            for edit in filter(None, change.split(" ;; ")):
                old, new = (part.replace("\\n", "\n").replace("\\t", "\t") for part in edit.split(" => "))
                assert old in text, line
                text = text.replace(old, new, 1)
            yield outcome == "starts", change, text, says


def doctor(build, path, server):
    done = subprocess.run([os.path.join(build, "kubectl-inspect-gpushare"), "doctor", f"--server={server}",
                           f"--scheduler-config={path}"], capture_output=True, text=True, timeout=60, check=False)
    return [line for line in done.stdout.splitlines() if "scheduler config: " in line]


def starts(scheduler, path, minor):
    done = subprocess.run([scheduler, f"--config={path}", f"--write-config-to={path}.out", "--secure-port=0",
                           *(["--port=0"] if minor < 24 else [])], capture_output=True, timeout=60, check=False)
    return done.returncode == 0


def main():
    build, scheduler = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    releases = [os.environ["KUBE_VERSION"]] if scheduler else ["1.20.2", "1.37.2"]
    wrong = judged = 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Version)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "kubeconfig"), "w", encoding="utf-8") as out:
            out.write(ACCOUNT)
        path = os.path.join(folder, "kube-scheduler.yaml")
        for release in releases:
            server.release = release
            minor = int(release.split(".")[1])
            version = "v1" if minor >= 25 else "v1beta3" if minor >= 23 else "v1beta1"
            for expected, change, text, says in rows():
                with open(path, "w", encoding="utf-8") as out:
                    out.write(text.replace("VERSION", version).replace("FOLDER", folder))
                lines = doctor(build, path, f"http://127.0.0.1:{server.server_port}")
                refused = any(line.startswith("FAIL") for line in lines)
                right = any(says in line for line in lines) if expected and says else refused != expected
                real = starts(scheduler, path, minor) if scheduler else expected
                judged += 1
                if not lines or not right or real != expected:
                    wrong += 1
                    print(f"WRONG {release}: {change!r}: listed {expected}, kube-scheduler {real}: {lines}")
        for version, readers in READ.items():
            with open(path, "w", encoding="utf-8") as out:
                out.write(COMPLETE.replace("VERSION", version))
            for minor in range(18, 30):
                server.release = f"1.{minor}.0"
                lines = doctor(build, path, f"http://127.0.0.1:{server.server_port}")
                if any("does not read" in line for line in lines) == (minor in readers):
                    wrong += 1
                    print(f"WRONG 1.{minor}: {version}: {lines}")
    print(f"{judged} files, {wrong} wrong")
    sys.exit(1 if wrong or not judged else 0)


main()
