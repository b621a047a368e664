#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every alert of manifests/monitoring/rules.yaml, firing and silent, and what is recorded for bills,
under promtool's clock.

    rules.py PROMTOOL RULES

A row is: alert, what happens, {series: values, one a minute}, minute, how many alerts fire then.
Values are promtool's: "0x10" is eleven zeroes, "0+3x10" counts up by three, "_" is no sample.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ATTEMPTS = "gpushare_bind_attempts_total"
BUCKET = "gpushare_request_duration_seconds_bucket"
PLUGIN = "gpushare_device_plugin_"
READY = "gpushare_ready"


def buckets(verb, fast, slow):
    """A histogram that counts so many fast and slow requests a minute."""
    return {f'{BUCKET}{{verb="{verb}",le="0.0512"}}': f"0+{fast}x60",
            f'{BUCKET}{{verb="{verb}",le="0.4096"}}': f"0+{fast + slow}x60",
            f'{BUCKET}{{verb="{verb}",le="+Inf"}}': f"0+{fast + slow}x60"}


def binds(bound, failed, outcome="failed"):
    return {f'{ATTEMPTS}{{outcome="bound"}}': f"0+{bound}x60",
            f'{ATTEMPTS}{{outcome="{outcome}"}}': f"0+{failed}x60"}


ROWS = [
    ("GpushareExtenderAbsent", "nobody is scraped", {"up": "1x10"}, 3, 1),
    ("GpushareExtenderAbsent", "one replica of two is left",
     {READY + '{instance="a"}': "1x10", READY + '{instance="b"}': "1 1 _x9"}, 10, 0),
    ("GpushareExtenderAbsent", "a restart of a minute", {READY: "1 1 1 1 1 _ 1x20"}, 6, 0),
    ("GpushareExtenderAbsent", "in one cluster of two",
     {READY + '{cluster="a"}': "1x10", PLUGIN + 'registered{cluster="a"}': "1x10",
      PLUGIN + 'registered{cluster="b",instance="x"}': "1x10",
      PLUGIN + 'registered{cluster="b",instance="y"}': "1x10"}, 3, 1),
    ("GpushareNoLeader", "in one cluster of two",
     {'gpushare_leader{cluster="a"}': "1x10", 'gpushare_leader{cluster="b"}': "0x10"}, 2, 1),
    ("GpusharePodsUnschedulable", "in two clusters",
     {'gpushare_unschedulable_pod_oldest_seconds{cluster="a"}': "4000x40",
      'gpushare_unschedulable_pod_oldest_seconds{cluster="b"}': "5000x40"}, 40, 2),
    ("GpushareBindErrors", "in one cluster of two",
     {**{key.replace("{", '{cluster="a",'): value for key, value in binds(999, 1).items()},
      **{key.replace("{", '{cluster="b",'): value for key, value in binds(9, 1).items()}}, 20, 1),
    ("GpushareNoLeader", "two standbys",
     {'gpushare_leader{instance="a"}': "0x10", 'gpushare_leader{instance="b"}': "0x10"}, 2, 1),
    ("GpushareNoLeader", "one of them leads",
     {'gpushare_leader{instance="a"}': "0x10", 'gpushare_leader{instance="b"}': "1x10"}, 2, 0),
    ("GpushareExtenderNotReady", "one replica of two never gets its lists",
     {READY + '{instance="a"}': "1x10", READY + '{instance="b"}': "0x10"}, 6, 1),
    ("GpushareExtenderNotReady", "loading takes three minutes", {READY: "0 0 0 1x20"}, 6, 0),
    ("GpushareLeaderFlaps", "five changes in half an hour",
     {'gpushare_leader_transitions_total{instance="a"}': "0x4 1x5 2x5 3x20",
      'gpushare_leader_transitions_total{instance="b"}': "0x8 1x5 2x20"}, 30, 1),
    ("GpushareLeaderFlaps", "a rolling update",
     {'gpushare_leader_transitions_total{instance="a"}': "0x10 1x30",
      'gpushare_leader_transitions_total{instance="b"}': "0x12 1x30"}, 30, 0),
    ("GpushareWatchStale", "the pods' watch is away",
     {'gpushare_watch_connected{kind="nodes"}': "1x10", 'gpushare_watch_connected{kind="pods"}': "0x10"},
     3, 1),
    ("GpushareWatchStale", "it comes back", {'gpushare_watch_connected{kind="pods"}': "1 0 1x10"}, 3, 0),
    ("GpushareGpuOvercommitted", "one GPU, seen by two replicas",
     {'gpushare_overcommitted_gpus{instance="a"}': "1x10",
      'gpushare_overcommitted_gpus{instance="b"}': "1x10"}, 2, 1),
    ("GpushareGpuOvercommitted", "none", {"gpushare_overcommitted_gpus": "0x10"}, 2, 0),
    ("GpushareLedgerDrift", "totals differ", {"gpushare_ledger_drift": "0 0 1x10"}, 3, 1),
    ("GpushareLedgerDrift", "claims were mended", {"gpushare_ledger_repairs_total": "0 0 2x10"},
     4, 1),
    ("GpushareLedgerDrift", "neither",
     {"gpushare_ledger_drift": "0x10", "gpushare_ledger_repairs_total": "7x10"}, 4, 0),
    ("GpushareInvariantViolation", "one", {"gpushare_invariant_violations_total": "0 0 1x10"}, 4, 1),
    ("GpushareInvariantViolation", "an hour ago", {"gpushare_invariant_violations_total": "0 1x90"},
     60, 0),
    ("GpushareInvalidGpuIndex", "for twenty minutes", {"gpushare_invalid_gpu_index_pods": "2x30"}, 20, 1),
    ("GpushareInvalidGpuIndex", "until the plugin recorded it",
     {"gpushare_invalid_gpu_index_pods": "2x5 0x30"}, 20, 0),
    ("GpushareBindErrors", "one of ten", binds(9, 1), 20, 1),
    ("GpushareBindErrors", "answers are lost", binds(5, 5, "unknown"), 20, 1),
    ("GpushareBindErrors", "one of a hundred", binds(99, 1), 20, 0),
    ("GpushareBindErrors", "no room is no error", binds(5, 5, "rejected"), 20, 0),
    ("GpushareBindErrors", "nothing is bound", binds(0, 0), 20, 0),
    ("GpushareBindsUnresolved", "for six minutes", {"gpushare_unresolved_binds": "1x10"}, 6, 1),
    ("GpushareBindsUnresolved", "for one", {"gpushare_unresolved_binds": "0 1 0x10"}, 6, 0),
    ("GpusharePodsUnschedulable", "forty minutes", {"gpushare_unschedulable_pod_oldest_seconds": "0+60x40"},
     40, 1),
    ("GpusharePodsUnschedulable", "twenty minutes", {"gpushare_unschedulable_pod_oldest_seconds": "0+60x20"},
     20, 0),
    ("GpusharePodsUnevaluated", "a forgotten schedulerName, two replicas",
     {'gpushare_unevaluated_pod_oldest_seconds{instance="a"}': "0+60x60",
      'gpushare_unevaluated_pod_oldest_seconds{instance="b"}': "0+60x60"}, 45, 1),
    ("GpusharePodsUnevaluated", "a replica that is not asked, and one that is",
     {'gpushare_unevaluated_pod_oldest_seconds{instance="a"}': "0+60x60",
      'gpushare_unevaluated_pod_oldest_seconds{instance="b"}': "0x60"}, 45, 0),
    ("GpusharePodsUnevaluated", "a restart: old pods until they are asked about again",
     {"gpushare_unevaluated_pod_oldest_seconds": "0x20 90000x5 0x40"}, 28, 0),
    ("GpusharePodsUnevaluated", "many that are asked about in the end",
     {"gpushare_unevaluated_pod_oldest_seconds": "5 9 3 12 40 2 1 8x40"}, 45, 0),
    ("GpushareExtenderBypassed", "one", {PLUGIN + 'allocations_total{outcome="unmatched"}':
                                          "0 0 1x20"}, 10, 1),
    ("GpushareExtenderBypassed", "all were claimed",
     {PLUGIN + 'allocations_total{outcome="unmatched"}': "0x20",
      PLUGIN + 'allocations_total{outcome="matched"}': "0+1x20"}, 10, 0),
    ("GpushareExtenderBypassed", "days ago",
     {PLUGIN + 'allocations_total{outcome="unmatched"}': "7x60"}, 40, 0),
    ("GpushareFragmented", "half an hour",
     {'gpushare_unschedulable_pods{reason="fragmented"}': "3x60"}, 40, 1),
    ("GpushareFragmented", "the memory is not there at all",
     {'gpushare_unschedulable_pods{reason="insufficient_memory"}': "3x60"}, 40, 0),
    ("GpushareSlowScheduling", "2 % of filter take long", buckets("filter", 980, 20), 30, 1),
    ("GpushareSlowScheduling", "1 in 1000 does", buckets("filter", 999, 1), 30, 0),
    ("GpushareSlowScheduling", "bind waits for the API server", buckets("bind", 10, 90), 30, 0),
    ("GpushareUnauthorized", "every minute", {"gpushare_api_unauthorized_total": "0+1x30"}, 20, 1),
    ("GpushareUnauthorized", "once, when the token was renewed",
     {"gpushare_api_unauthorized_total": "0 1x30"}, 20, 0),
    ("GpushareCertificateUnusable", "the new files do not fit", {"gpushare_http_tls_stale": "1x30"},
     20, 1),
    ("GpushareCertificateUnusable", "one file was written before the other",
     {"gpushare_http_tls_stale": "0 0 1 1 0x30"}, 20, 0),
    ("GpushareCertificateExpires", "in six days",
     {"gpushare_http_tls_expiry_timestamp_seconds": f"{6 * 86400}x10"}, 5, 1),
    ("GpushareCertificateExpires", "in a month",
     {"gpushare_http_tls_expiry_timestamp_seconds": f"{30 * 86400}x10"}, 5, 0),
    ("GpusharePluginNotRegistered", "two nodes of three",
     {PLUGIN + 'registered{instance="a"}': "0x10", PLUGIN + 'registered{instance="b"}': "0x10",
      PLUGIN + 'registered{instance="c"}': "1x10"}, 6, 2),
    ("GpusharePluginNotRegistered", "a plugin that ends now and then, for want of a driver",
     {PLUGIN + "registered": "0 0 0 _ 0 0 0 _ 0 0 0"}, 9, 1),
    ("GpusharePluginNotRegistered", "a restart of the kubelet",
     {PLUGIN + "registered": "1 0 0 1x10"}, 6, 0),
    ("GpusharePluginNotReady", "the driver is gone",
     {PLUGIN + "ready": "0x10", PLUGIN + "registered": "1x10"}, 6, 1),
    ("GpusharePluginNotReady", "the kubelet is gone: another alert",
     {PLUGIN + "ready": "0x10", PLUGIN + "registered": "0x10"}, 6, 0),
    ("GpusharePluginNotReady", "all is well",
     {PLUGIN + "ready": "1x10", PLUGIN + "registered": "1x10"}, 6, 0),
    ("GpushareGpuUnhealthy", "one of two",
     {PLUGIN + 'gpu_healthy{gpu="0"}': "1x10", PLUGIN + 'gpu_healthy{gpu="1"}': "0x10"}, 6, 1),
    ("GpushareGpuUnhealthy", "it recovers", {PLUGIN + 'gpu_healthy{gpu="1"}': "1 0 0 1x10"}, 6, 0),
    ("GpushareGpuOverused", "8 GiB were given, 12 are in use",
     {PLUGIN + 'gpu_memory_used_bytes{gpu="0"}': f"{12 << 30}x20",
      PLUGIN + 'gpu_memory_allocated_bytes{gpu="0"}': f"{8 << 30}x20"}, 15, 1),
    ("GpushareGpuOverused", "in use by somebody whom nobody placed there",
     {PLUGIN + 'gpu_memory_used_bytes{gpu="0"}': f"{12 << 30}x20",
      PLUGIN + 'gpu_memory_allocated_bytes{gpu="0"}': "0x20"}, 15, 1),
    ("GpushareGpuOverused", "what the driver needs itself",
     {PLUGIN + 'gpu_memory_used_bytes{gpu="0"}': f"{9 << 30}x20",
      PLUGIN + 'gpu_memory_allocated_bytes{gpu="0"}': f"{8 << 30}x20"}, 15, 0),
    ("GpushareGpuOverused", "not known",
     {PLUGIN + 'gpu_memory_allocated_bytes{gpu="0"}': f"{8 << 30}x20"}, 15, 0),
    ("GpushareWritesStuck", "one is never taken", {PLUGIN + "pending_api_writes": "1x40"}, 30, 1),
    ("GpushareWritesStuck", "a busy node", {PLUGIN + "pending_api_writes": "3 0 2 1 0 4 3 2 0 5x5 0x30"},
     20, 0),
    ("GpushareUnitChangePending", "for two hours", {PLUGIN + "unit_change_pending": "1x120"}, 120, 1),
    ("GpushareUnitChangePending", "until the node was drained",
     {PLUGIN + "unit_change_pending": "1x40 0x80"}, 120, 0),
    ("GpushareAllocationsFail", "no room",
     {PLUGIN + 'allocations_total{outcome="insufficient_memory"}': "0 0 1x10"}, 5, 1),
    ("GpushareAllocationsFail", "pods without the extender are served",
     {PLUGIN + 'allocations_total{outcome="unmatched"}': "0+1x10"}, 5, 0),
    ("GpushareStartsBlocked", "one", {PLUGIN + "blocked_starts_total": "0 0 1x10"}, 5, 1),
    ("GpushareStartsBlocked", "none since long", {PLUGIN + "blocked_starts_total": "4x30"}, 20, 0),
    ("GpusharePodsOverRequest", "a pod uses more than it was given",
     {PLUGIN + 'pods_by_limit{state="over_request"}': "0 1x20"}, 14, 1),
    ("GpusharePodsOverRequest", "for a few minutes",
     {PLUGIN + 'pods_by_limit{state="over_request"}': "0 1x5 0x20"}, 14, 0),
    ("GpusharePodMemoryOverRequest", "two pods, one of them", {
        PLUGIN + 'pod_gpu_memory_used_bytes{namespace="a",pod="p",gpu="0"}': f"{6 << 30}x20",
        PLUGIN + 'pod_gpu_memory_allocated_bytes{namespace="a",pod="p",gpu="0"}': f"{4 << 30}x20",
        PLUGIN + 'pod_gpu_memory_used_bytes{namespace="a",pod="q",gpu="0"}': f"{4 << 30}x20",
        PLUGIN + 'pod_gpu_memory_allocated_bytes{namespace="a",pod="q",gpu="0"}': f"{8 << 30}x20"}, 14, 1),
    ("GpusharePodMemoryOverRequest", "by a context", {
        PLUGIN + 'pod_gpu_memory_used_bytes{namespace="a",pod="p",gpu="0"}': f"{(4 << 30) + (526 << 20)}x20",
        PLUGIN + 'pod_gpu_memory_allocated_bytes{namespace="a",pod="p",gpu="0"}': f"{4 << 30}x20"}, 14, 0),
    ("GpushareHookLeftovers", "more than a node's pods leave in a while",
     {PLUGIN + "hook_leftover_folders": "0 150x80"}, 70, 1),
    ("GpushareHookLeftovers", "it is being emptied",
     {PLUGIN + "hook_leftover_folders": "0 900x30 0x60"}, 70, 0),
    ("GpushareLimitMissing", "a pod without its limit",
     {PLUGIN + 'pods_by_limit{state="not_limited"}': "0 1x10"}, 8, 1),
    ("GpushareLimitMissing", "all are held",
     {PLUGIN + 'pods_by_limit{state="limited"}': "3x10",
      PLUGIN + 'pods_by_limit{state="not_limited"}': "0x10"}, 8, 0),
    ("GpushareLimitMissing", "repaired at the next look",
     {PLUGIN + 'pods_by_limit{state="not_limited"}': "0 1x3 0x10"}, 8, 0),
]


def test_of(row):
    alert, what, series, minute, fires = row
    firing = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
    return {
        "name": f"{alert}: {what}",
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": f"count({firing}) or vector(0)", "eval_time": f"{minute}m",
                              "exp_samples": [{"labels": "{}", "value": fires}]}],
    }


INFO = PLUGIN + "pod_gpu_info"


def join_test(dashboard):
    """The dashboard's query that joins pods with DCGM's exporter by the GPU's UUID."""
    with open(dashboard, encoding="utf-8") as text:
        queries = [target["expr"] for panel in json.load(text)["panels"]
                   for target in panel.get("targets", []) if "DCGM_" in target["expr"]]
    query = queries[0].replace("$cluster", ".*").replace("$namespace", ".*")
    series = {
        INFO + '{namespace="t",pod="a",gpu="0",UUID="GPU-1",instance="n"}': "1x5",
        INFO + '{namespace="t",pod="b",gpu="0",UUID="GPU-1",instance="n"}': "1x5",
        INFO + '{namespace="t",pod="b",gpu="1",UUID="GPU-2",instance="n"}': "1x5",
        'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",gpu="0",Hostname="n",pod="exporter"}': "80x5",
        'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-2",gpu="1",Hostname="n",pod="exporter"}': "40x5"}
    return {
        "name": "pods and DCGM", "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": "2m", "exp_samples": [
            {"labels": '{namespace="t",pod="a"}', "value": 80},
            {"labels": '{namespace="t",pod="b"}', "value": 60}]}]}


GIVEN, USED = PLUGIN + "pod_gpu_memory_allocated_bytes", PLUGIN + "pod_gpu_memory_used_bytes"
RECORDED = "gpushare:%s_gib_hours:sum1h"


def bill(name, labels, hours):
    """What one record says after an hour, and what a bill of two hours is."""
    series = RECORDED % name
    return [{"expr": f"{query}{end}", "eval_time": f"{minute}m",
             "exp_samples": [{"labels": start + labels, "value": value}]}
            for query, end, start, minute, value in (
                (series + labels, "", series, 60, hours[0]),
                (f"sum_over_time({series}{labels}", "[119m])", "", 120, sum(hours)))]


def monthly():
    """The queries of docs/with.md, by what, of two hours in place of a month."""
    with open(os.path.join(ROOT, "docs", "with.md"), encoding="utf-8") as text:
        table = re.search(r"^\| by \| allocated \| used \|\n(.*?)\n\n", text.read(), re.M | re.S)[1]
    return [re.sub(r"\[30d\]", "[119m]", query) for query in re.findall(r"`(sum by .*?)`", table)]


def cost_test():
    """Two hours: who was there for ten minutes, two replicas that say the same, a pod on two GPUs."""
    stay, leave = f"{8 << 30}x125", f"{6 << 30}x9 stale"
    allocated = "gpushare_namespace_memory_allocated_bytes"
    gpu = "gpushare_gpu_memory_allocated_bytes"
    pod = 'namespace="t",pod="a",owner="Job/a",instance="n"'
    series = {
        **{f'{allocated}{{namespace="stays",instance="{one}"}}': stay for one in "ab"},
        **{f'{allocated}{{namespace="left",instance="{one}"}}': leave for one in "ab"},
        **{f'{gpu}{{node="n",gpu="{idx}",instance="{one}"}}': stay for idx in "01" for one in "ab"},
        **{f'{GIVEN}{{{pod},gpu="{idx}"}}': stay for idx in "01"},
        f'{GIVEN}{{namespace="t",pod="b",owner="Job/b",instance="n",gpu="0"}}': leave,
        **{f'{USED}{{{pod},gpu="{idx}"}}': f"{2 << 30}x125" for idx in "01"},
        **{f'kube_node_labels{{node="n",instance="{one}",label_nvidia_com_gpu_product="L4"}}': "1x125" for one in "ab"}}
    both = [('{namespace="stays"}', 16), ('{namespace="left"}', 0.9)]
    owners = [('{namespace="t",owner="Job/a"}', 32), ('{namespace="t",owner="Job/b"}', 0.9)]
    months = [both, [('{namespace="t"}', 8)], owners, [('{namespace="t",owner="Job/a"}', 8)],
              [('{label_nvidia_com_gpu_product="L4"}', 32)]]
    return {
        "name": "cost", "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            *bill("namespace_allocated", '{namespace="stays"}', (8, 8)),
            *bill("node_allocated", '{node="n"}', (16, 16)),
            *bill("owner_allocated", '{namespace="t",owner="Job/a"}', (16, 16)),
            *bill("owner_used", '{namespace="t",owner="Job/a"}', (4, 4)),
            {"expr": f'sum_over_time({RECORDED % "namespace_allocated"}{{namespace="left"}}[3h])',
             "eval_time": "120m", "exp_samples": [{"labels": '{namespace="left"}', "value": 1}]},
            *({"expr": query, "eval_time": "120m",
               "exp_samples": [{"labels": labels, "value": value} for labels, value in rows]}
              for query, rows in zip(monthly(), months, strict=True))]}


def untested(rules):
    with open(rules, encoding="utf-8") as text:
        alerts = set(re.findall(r"^\s*- alert: (\w+)$", text.read(), re.M))
    for alert in sorted(alerts | {row[0] for row in ROWS}):
        fires = [row[4] > 0 for row in ROWS if row[0] == alert]
        if alert not in alerts:
            yield f"{alert}: tested, but there is no such rule"
        elif True not in fires or False not in fires:
            yield f"{alert}: is not tested both firing and silent"


def run(promtool, rules, interval, tests):
    """Promtool evaluates all groups at one interval, whatever theirs is."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as out:
        # JSON is YAML
        json.dump({"rule_files": [rules], "evaluation_interval": interval, "tests": tests}, out)
        out.flush()
        done = subprocess.run([promtool, "test", "rules", out.name], check=False,
                              capture_output=True, text=True)
    if done.returncode:
        print(done.stdout + done.stderr)
    return done.returncode


def main():
    promtool, rules = sys.argv[1:]
    problems = list(untested(rules))
    for problem in problems:
        print(problem)
    dashboard = os.path.join(os.path.dirname(rules), "dashboard.json")
    failed = run(promtool, rules, "1m", [*map(test_of, ROWS), join_test(dashboard)])
    failed |= run(promtool, rules, "1h", [cost_test()])
    if not failed:
        print(f"note: {len(ROWS)} situations, and two hours' bills", file=sys.stderr)
    sys.exit(1 if problems or failed else 0)


main()
