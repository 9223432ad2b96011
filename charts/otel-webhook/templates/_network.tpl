{{/* The ingress rule for health and metrics. */}}
{{- define "otel-webhook.adminIngress" -}}
- ports:
    - protocol: TCP
      port: admin
  {{- with .Values.networkPolicy.adminFrom }}
  from:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The ingress rule for the controller, which asks each replica before it restarts a workload. */}}
{{- define "otel-webhook.controllerIngress" -}}
- ports:
    - protocol: TCP
      port: admin
  from:
    - podSelector:
        matchLabels:
          {{- include "otel-webhook.controllerLabels" . | nindent 10 }}
{{- end -}}

{{/* The egress rule of the controller for the same. Pods of the host's network have no labels there. */}}
{{- define "otel-webhook.controllerEgress" -}}
- ports:
    - protocol: TCP
      port: {{ .Values.admin.port }}
  {{- if not .Values.hostNetwork }}
  to:
    - podSelector:
        matchLabels:
          {{- include "otel-webhook.selectorLabels" . | nindent 10 }}
  {{- end }}
{{- end -}}

{{/* The egress rule of the controller for the source of what arrives: the port of its URL, of a Service that does not map it. */}}
{{- define "otel-webhook.heardEgress" -}}
{{- $url := urlParse .Values.controller.heard.url -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (ternary "443" "80" (eq $url.scheme "https")) -}}
- ports:
    - protocol: TCP
      port: {{ $port }}
{{- end -}}

{{/* The egress rules: DNS and the API server. */}}
{{- define "otel-webhook.egress" -}}
{{- with .Values.networkPolicy.egress -}}
- ports:
    - protocol: UDP
      port: 53
    - protocol: TCP
      port: 53
- ports:
    {{- range .apiServerPorts }}
    - protocol: TCP
      port: {{ . }}
    {{- end }}
  {{- with .apiServerTo }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- with .extra }}
{{ toYaml . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* A NetworkPolicy `name` for the pods of a component, with the ingress rules `ingress` and more egress rules `egress`. */}}
{{- define "otel-webhook.networkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "otel-webhook.labels" (dict "root" .root) }}
  {{- include "otel-webhook.annotations" (dict "root" .root) }}
spec:
  podSelector:
    matchLabels:
      {{- include "otel-webhook.componentLabels" . | nindent 6 }}
  policyTypes:
    - Ingress
    {{- if .root.Values.networkPolicy.egress.enabled }}
    - Egress
    {{- end }}
  ingress:
    {{- .ingress | nindent 4 }}
  {{- if .root.Values.networkPolicy.egress.enabled }}
  egress:
    {{- include "otel-webhook.egress" .root | nindent 4 }}
    {{- with .egress }}
    {{- . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end -}}

{{/* The ingress rule for reviews. */}}
{{- define "otel-webhook.webhookIngress" -}}
- ports:
    - protocol: TCP
      port: webhook
  {{- with .Values.networkPolicy.webhookFrom }}
  from:
    {{- toYaml . | nindent 4 }}
    # The pods of helm test and of the Job, which send one review and end.
    - podSelector:
        matchLabels:
          {{- include "otel-webhook.reviewLabels" $ | nindent 10 }}
  {{- end }}
{{- end -}}
