{{/* metadata of a role or a binding with the name `name`; `namespaced` says whether it has a namespace. */}}
{{- define "otel-webhook.roleMetadata" -}}
metadata:
  name: {{ .name }}
  {{- if .namespaced }}
  namespace: {{ .root.Release.Namespace }}
  {{- end }}
  {{- include "otel-webhook.labels" (dict "root" .root) }}
  {{- include "otel-webhook.annotations" (dict "root" .root) }}
{{- end -}}

{{/* A role and its binding to the ServiceAccount `account`; `rules` is a file of rules, with the names filled in. */}}
{{- define "otel-webhook.role" -}}
{{- $kind := ternary "Role" "ClusterRole" .namespaced -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
{{ include "otel-webhook.roleMetadata" . }}
rules:
  {{- trim .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
{{ include "otel-webhook.roleMetadata" . }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}
