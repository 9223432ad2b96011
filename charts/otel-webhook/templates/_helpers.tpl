{{- define "otel-webhook.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "otel-webhook.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "otel-webhook.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "otel-webhook.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The Service of the metrics. A name of a Service has at most 63 characters. */}}
{{- define "otel-webhook.metricsName" -}}
{{- printf "%s-metrics" (include "otel-webhook.fullname" . | trunc 55 | trimSuffix "-") -}}
{{- end -}}

{{/*
The objects of the controller, its Lease included. A name of a Service has at
most 63 characters.
*/}}
{{- define "otel-webhook.controllerName" -}}
{{- printf "%s-controller" (include "otel-webhook.fullname" . | trunc 52 | trimSuffix "-") -}}
{{- end -}}

{{/* The ConfigMap in which the controller remembers restarts. */}}
{{- define "otel-webhook.restartsName" -}}
{{- printf "%s-restarts" (include "otel-webhook.fullname" .) -}}
{{- end -}}

{{/* The ConfigMap with the settings that results depend on. */}}
{{- define "otel-webhook.settingsName" -}}
{{- printf "%s-settings" (include "otel-webhook.fullname" .) -}}
{{- end -}}

{{/* The labels that select the pods of a component: `webhook`, `controller` or `review`. */}}
{{- define "otel-webhook.componentLabels" -}}
app.kubernetes.io/name: {{ include "otel-webhook.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "otel-webhook.selectorLabels" -}}
{{- include "otel-webhook.componentLabels" (dict "root" . "component" "webhook") -}}
{{- end -}}

{{- define "otel-webhook.controllerLabels" -}}
{{- include "otel-webhook.componentLabels" (dict "root" . "component" "controller") -}}
{{- end -}}

{{/* The labels of an object, as lines of its metadata. The chart's override `own`, which override the common ones. */}}
{{- define "otel-webhook.labels" -}}
{{- with .root -}}
{{- $labels := dict
      "app.kubernetes.io/name" (include "otel-webhook.name" .)
      "app.kubernetes.io/instance" .Release.Name
      "app.kubernetes.io/version" .Chart.AppVersion
      "app.kubernetes.io/managed-by" .Release.Service
      "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") }}
  labels:
    {{- merge $labels ($.own | default dict) .Values.commonLabels | toYaml | nindent 4 }}
{{- end }}
{{- end -}}

{{/*
The annotations of an object, as lines of its metadata, or nothing if there are
none. `own` override the common ones.
*/}}
{{- define "otel-webhook.annotations" -}}
{{- with merge (dict) (.own | default dict) .root.Values.commonAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{- define "otel-webhook.serviceAccountName" -}}
{{- with .Values.serviceAccount -}}
{{- default (ternary (include "otel-webhook.fullname" $) "default" .create) .name -}}
{{- end -}}
{{- end -}}

{{- define "otel-webhook.controllerAccountName" -}}
{{- with .Values.controller.serviceAccount -}}
{{- default (ternary (include "otel-webhook.controllerName" $) "default" .create) .name -}}
{{- end -}}
{{- end -}}

{{/* A ServiceAccount `name` with the annotations `annotations`. */}}
{{- define "otel-webhook.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "otel-webhook.labels" (dict "root" .root) }}
  {{- include "otel-webhook.annotations" (dict "root" .root "own" .annotations) }}
# The pods mount the token themselves.
automountServiceAccountToken: false
{{- end -}}

{{/* A PodDisruptionBudget `name` for the pods of a component, with the values `own`. */}}
{{- define "otel-webhook.podDisruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "otel-webhook.labels" (dict "root" .root) }}
  {{- include "otel-webhook.annotations" (dict "root" .root) }}
spec:
  {{- if kindIs "invalid" .own.minAvailable }}
  maxUnavailable: {{ .own.maxUnavailable }}
  {{- else }}
  minAvailable: {{ .own.minAvailable }}
  {{- end }}
  # A pod that is not ready may always be evicted.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "otel-webhook.componentLabels" . | nindent 6 }}
{{- end -}}

{{/* A Service `name` for the metrics of a component. */}}
{{- define "otel-webhook.metricsService" -}}
{{- $values := .root.Values -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "otel-webhook.labels" (dict "root" .root "own" (merge (dict "app.kubernetes.io/component" "metrics") $values.metricsService.labels)) }}
  {{- include "otel-webhook.annotations" (dict "root" .root "own" $values.metricsService.annotations) }}
spec:
  type: ClusterIP
  {{- with $values.service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
  {{- end }}
  selector:
    {{- include "otel-webhook.componentLabels" . | nindent 4 }}
  ports:
    - name: metrics
      port: {{ $values.metricsService.port }}
      targetPort: admin
      protocol: TCP
      appProtocol: http
{{- end -}}

{{- define "otel-webhook.image" -}}
{{- $registry := default .Values.image.registry (.Values.global).imageRegistry -}}
{{- $image := .Values.image.repository -}}
{{- if $registry -}}
{{- $image = printf "%s/%s" (trimSuffix "/" $registry) $image -}}
{{- end -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- if .Values.image.digest -}}
{{- printf "%s:%s@%s" $image $tag .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image $tag -}}
{{- end -}}
{{- end -}}

{{/* The pull secrets of a pod, as lines of its spec, or nothing. Other charts have plain names in `global`. */}}
{{- define "otel-webhook.imagePullSecrets" -}}
{{- $secrets := list -}}
{{- range concat ((.Values.global).imagePullSecrets | default list) .Values.imagePullSecrets -}}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- with uniq $secrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The specification of a Service for the webhook port. */}}
{{- define "otel-webhook.serviceSpec" -}}
type: ClusterIP
{{- with .Values.service.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
selector:
  {{- include "otel-webhook.selectorLabels" . | nindent 2 }}
ports:
  - name: https
    port: {{ .Values.service.port }}
    targetPort: webhook
    protocol: TCP
    appProtocol: https
{{- end -}}

{{/* The names by which the API server and other clients call the webhook. */}}
{{- define "otel-webhook.dnsNames" -}}
{{- $service := printf "%s.%s.svc" (include "otel-webhook.fullname" .) .Release.Namespace -}}
- {{ include "otel-webhook.fullname" . }}
- {{ include "otel-webhook.fullname" . }}.{{ .Release.Namespace }}
- {{ $service }}
- {{ $service }}.{{ .Values.clusterDomain }}
{{- if include "otel-webhook.converts" . }}
- {{ include "otel-webhook.conversionName" . }}.{{ .Release.Namespace }}.svc
{{- end }}
{{- range .Values.certificates.extraNames }}
{{- if not (include "otel-webhook.isAddress" .) }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "otel-webhook.ipAddresses" -}}
{{- range .Values.certificates.extraNames }}
{{- if include "otel-webhook.isAddress" . }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* "true" for an IP address: no DNS name has a colon, or only digits in its last label. */}}
{{- define "otel-webhook.isAddress" -}}
{{- if regexMatch ":|(^|\\.)[0-9]+$" . -}}
true
{{- end -}}
{{- end -}}

{{/* Seconds from the signal until the last request is cancelled, plus a reserve. */}}
{{- define "otel-webhook.terminationGracePeriodSeconds" -}}
{{- add (int .Values.shutdown.delaySeconds) (int .Values.shutdown.graceSeconds) 5 -}}
{{- end -}}
