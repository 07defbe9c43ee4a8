{{- define "control.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "control.selector" -}}
app.kubernetes.io/name: tenfold-control
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "control.labels" -}}
{{ include "control.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "postgresql.selector" -}}
app.kubernetes.io/name: tenfold-postgresql
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "container.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "control.hosts" -}}
{{- $name := include "control.name" . -}}
{{- $space := .Release.Namespace -}}
localhost,127.0.0.1,{{ $name }},{{ $name }}.{{ $space }},{{ $name }}.{{ $space }}.svc,{{ $name }}.{{ $space }}.svc.cluster.local
{{- range .Values.service.hosts }},{{ . }}{{ end -}}
{{- end -}}
