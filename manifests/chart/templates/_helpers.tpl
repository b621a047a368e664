{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{- define "gpushare.labels" -}}
app.kubernetes.io/part-of: gpushare
{{ include "gpushare.helmLabels" . }}
{{- end }}

{{- define "gpushare.helmLabels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Of a workload's own object: (list . NAME VALUES); VALUES may have a namespace */}}
{{- define "gpushare.workloadMeta" -}}
name: {{ index . 1 }}
namespace: {{ (index . 2).namespace | default (index . 0).Release.Namespace }}
labels:
  app.kubernetes.io/name: {{ index . 1 }}
  {{- include "gpushare.labels" (index . 0) | nindent 2 }}
{{- with (index . 2).annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Labels of its pods: (list NAME VALUES) */}}
{{- define "gpushare.podLabels" -}}
app.kubernetes.io/name: {{ index . 0 }}
app.kubernetes.io/part-of: gpushare
{{- with (index . 1).podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Where its pods run, and how important they are: (list VALUES DEFAULT-AFFINITY DEFAULT-TOLERATIONS) */}}
{{- define "gpushare.placement" -}}
{{- $values := index . 0 }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity | default (index . 1 | fromYaml) }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations | default (index . 2 | fromYamlArray) }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
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
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 100
    podAffinityTerm:
      topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          app.kubernetes.io/name: {{ . }}
{{- end }}

{{/* On the control plane. */}}
{{- define "gpushare.controlPlane" -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
    - matchExpressions:
      - {key: node-role.kubernetes.io/control-plane, operator: Exists}
    # kubeadm before 1.20
    - matchExpressions:
      - {key: node-role.kubernetes.io/master, operator: Exists}
{{- end }}

{{/* The cluster's release, as images are tagged. */}}
{{- define "gpushare.release" -}}
v{{ regexFind "[0-9]+\\.[0-9]+\\.[0-9]+" .Capabilities.KubeVersion.Version }}
{{- end }}

{{/* kube-scheduler tries a nominated node first from 1.22 on, and may be a release older than the API
server. */}}
{{- define "gpushare.nominates" -}}
{{- if and .Values.extender.nominate (semverCompare ">=1.23.0-0" .Capabilities.KubeVersion.Version) }}true{{ end }}
{{- end }}

{{/* Flags that every layout's extender has besides its own. */}}
{{- define "gpushare.extenderFlags" -}}
- --log-format=json
{{- with .Values.extender.logLevel }}
- --log-level={{ . }}
{{- end }}
{{- with .Values.extender.policy }}
- --policy={{ . }}
{{- end }}
{{- with .Values.extender.filterNames }}
- --filter-names={{ . }}
{{- end }}
{{- if ne .Values.domain "aliyun.com" }}
- --domain={{ .Values.domain }}
{{- end }}
{{- if not .Values.extender.nominate }}
- --nominate=false
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

{{/* Subjects of a binding: (list . ACCOUNT) */}}
{{- define "gpushare.subject" -}}
subjects:
- kind: ServiceAccount
  name: {{ index . 1 }}
  namespace: {{ (index . 0).Release.Namespace }}
{{- end }}
