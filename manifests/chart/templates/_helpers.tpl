{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{- define "gpushare.labels" -}}
app.kubernetes.io/part-of: gpushare
{{ include "gpushare.helmLabels" . }}
{{- end }}

{{- define "gpushare.helmLabels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* (list . PROGRAM DIGEST) */}}
{{- define "gpushare.image" -}}
{{- $ := index . 0 -}}
image: {{ $.Values.image.repository }}/{{ index . 1 }}:{{ $.Values.image.tag | default $.Chart.AppVersion }}
{{- with index . 2 }}@{{ . }}{{ end }}
{{- with $.Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}

{{- define "gpushare.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gpushare.unprivileged" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
{{- end }}

{{/* Nobody of importance in the container. */}}
{{- define "gpushare.nonroot" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* Replicas on different nodes: the pods' name. */}}
{{- define "gpushare.apart" -}}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            app.kubernetes.io/name: {{ . }}
{{- end }}

{{/* Flags that every layout's extender has besides its own. */}}
{{- define "gpushare.extenderFlags" -}}
- --sparse-scores
- --log-format=json
{{- with .Values.extender.policy }}
- --policy={{ . }}
{{- end }}
{{- if ne .Values.domain "aliyun.com" }}
- --domain={{ .Values.domain }}
{{- end }}
{{- range .Values.extender.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "gpushare.extenderProbes" -}}
livenessProbe:
  httpGet: {path: /healthz, port: health}
  initialDelaySeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 2
{{- end }}

{{/* Whom a binding is for: (list . ACCOUNT) */}}
{{- define "gpushare.subject" -}}
subjects:
- kind: ServiceAccount
  name: {{ index . 1 }}
  namespace: {{ (index . 0).Release.Namespace }}
{{- end }}
