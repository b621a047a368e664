#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes manifests/monitoring/prometheusrule.yaml: the rules of rules.yaml as an object of the
# Prometheus operator. --stdout prints it instead (scripts/check.sh alerts compares).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../manifests/monitoring"

render() {
    cat <<'YAML'
# SPDX-License-Identifier: Apache-2.0
# Written by scripts/monitoring.sh from rules.yaml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: gpushare
  namespace: gpushare-system
  labels:
    app.kubernetes.io/part-of: gpushare
spec:
YAML
    sed -n '/^groups:/,$p' rules.yaml | sed 's/^\(.\)/  \1/'
}

if [[ ${1:-} == --stdout ]]; then
    render
else
    render >prometheusrule.yaml
fi
