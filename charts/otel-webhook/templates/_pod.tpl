{{/* Arguments of the server. */}}
{{- define "otel-webhook.args" -}}
{{- include "otel-webhook.checkNetwork" . -}}
- serve
- --listen=[::]:{{ .Values.webhook.port }}
- --admin-listen=[::]:{{ .Values.admin.port }}
- --shutdown-delay={{ .Values.shutdown.delaySeconds }}
- --shutdown-grace={{ .Values.shutdown.graceSeconds }}
- --log-format={{ .Values.logs.format }}
- {{ printf "--log=%s" .Values.logs.level | quote }}
{{ include "otel-webhook.certificateArgs" . }}
{{ include "otel-webhook.injectionArgs" . }}
{{- if .Values.injection.previewWarnings }}
- --preview-warnings
{{- end }}
{{- if eq .Values.registration.pods.shape "annotated" }}
- --only-annotated-pods
{{- end }}
- --max-review-memory={{ int .Values.webhook.maxReviewMemory }}
{{- if .Values.controller.enabled }}
- --lease={{ include "otel-webhook.controllerName" . }}
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Arguments of the controller. */}}
{{- define "otel-webhook.controllerArgs" -}}
{{- $name := include "otel-webhook.controllerName" . -}}
{{- if eq (int .Values.controller.pagePort) (int .Values.admin.port) -}}
{{- fail (printf "controller.pagePort and admin.port are both %d; set different ports" (int .Values.admin.port)) -}}
{{- end -}}
- controller
- --admin-listen=[::]:{{ .Values.admin.port }}
- --page-listen=127.0.0.1:{{ .Values.controller.pagePort }}
- --webhook-configuration={{ include "otel-webhook.registrationName" . }}
- --lease={{ $name }}
- --lease-namespace={{ .Release.Namespace }}
- --log-format={{ .Values.logs.format }}
- {{ printf "--log=%s" .Values.logs.level | quote }}
{{ include "otel-webhook.injectionArgs" . }}
{{- if not .Values.controller.mistakes.enabled }}
- --mistakes=false
{{- end }}
{{- with .Values.controller.metricsNamespaces }}
- --metrics-namespaces={{ . }}
{{- end }}
{{- if .Values.controller.nameAllWorkloads }}
- --name-all-workloads
{{- end }}
{{- with .Values.controller.teamLabel }}
- {{ printf "--team-label=%s" . | quote }}
{{- end }}
{{- with .Values.controller.restarts }}
{{- if .enabled }}
- --restarts
{{- if .withoutPolicy }}
- --restarts-without-policy
{{- end }}
- --restarts-config-map={{ include "otel-webhook.restartsName" $ }}
- --webhook-service={{ include "otel-webhook.metricsName" $ }}
- --restart-settle={{ .settle }}
- --restart-observe={{ .observe }}
- --restart-progress={{ .progress }}
- --restart-at-once={{ .atOnce }}
- --restart-per-namespace={{ .perNamespace }}
- --restart-per-minute={{ .perMinute }}
{{- end }}
{{- end }}
{{- with .Values.controller.heard }}
{{- if .source }}
- --heard-source={{ .source }}
- {{ printf "--heard-url=%s" (required "controller.heard.url: set the URL of the source" .url) | quote }}
{{- with .query }}
- {{ printf "--heard-query=%s" . | quote }}
{{- end }}
{{- with .signals }}
- --heard-signals={{ join "," . }}
{{- end }}
- --heard-interval={{ .interval }}
- --heard-patience={{ .patience }}
{{- with .caKey }}
- --heard-ca-file=/etc/otel-webhook/heard/{{ . }}
{{- end }}
{{- with .tokenKey }}
- --heard-token-file=/etc/otel-webhook/heard/{{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- range .Values.controller.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Arguments that decide what is injected. The controller decides as the webhook does, so both have the same. */}}
{{- define "otel-webhook.injectionArgs" -}}
{{- $injection := .Values.injection -}}
- --languages={{ join "," $injection.languages }}
- --stamp={{ $injection.stamp }}
{{- if not (kindIs "invalid" $injection.safeToEvict) }}
- --safe-to-evict={{ $injection.safeToEvict }}
{{- end }}
- --init-resources={{ $injection.initResources }}
- --delivery={{ $injection.delivery }}
{{- if $injection.watchNodes }}
- --watch-nodes
{{- end }}
{{- if $injection.requireImages }}
- --require-images
{{- end }}
- --image-volumes-from={{ $injection.imageVolumesFrom }}
- --cross-namespace={{ $injection.crossNamespace }}
- --init-containers-privileged={{ $injection.initContainersPrivileged }}
{{- with include "otel-webhook.defaultInstrumentation" . }}
- --default-instrumentation={{ . }}
{{- end }}
{{- range $injection.helperContainers }}
- {{ printf "--helper-containers=%s" . | quote }}
{{- end }}
{{- range $language, $size := $injection.agentSizes }}
- {{ printf "--agent-size=%s=%s" $language $size | quote }}
{{- end }}
{{- range $language, $image := $injection.images }}
- {{ printf "--default-image=%s=%s" $language $image | quote }}
{{- end }}
{{- with $injection.imageRegistry }}
- {{ printf "--image-registry=%s" . | quote }}
{{- end }}
- --max-pod-size={{ $injection.maxPodSize }}
- --max-declarative-config-size={{ $injection.maxDeclarativeConfigSize }}
{{- with .Values.instrumentations.reservedNamespaces }}
- --reserved-namespaces={{ join "," . }}
{{- end }}
- --max-instrumentation-size={{ $injection.maxInstrumentationSize }}
- --max-instrumentations-total={{ $injection.maxInstrumentationsTotal }}
{{- end -}}

{{/* The default Instrumentation as namespace/name, or nothing. */}}
{{- define "otel-webhook.defaultInstrumentation" -}}
{{- with .Values.defaultInstrumentation -}}
{{- if and .enabled .existing -}}
{{- fail "defaultInstrumentation.existing names an existing Instrumentation, and defaultInstrumentation.enabled creates one; set only one of the two" -}}
{{- end -}}
{{- if .enabled -}}
{{- printf "%s/%s" $.Release.Namespace .name -}}
{{- else -}}
{{- .existing -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Labels of the pods of a component; `own` are its values. The selector labels override
the others: with another value the Deployment would not select its pods.
*/}}
{{- define "otel-webhook.podLabels" -}}
{{- $labels := include "otel-webhook.componentLabels" . | fromYaml -}}
{{- toYaml (merge $labels .own.podLabels .root.Values.commonLabels) -}}
{{- end -}}

{{/* Update strategy. With `hostNetwork` two pods cannot use the ports of one node. */}}
{{- define "otel-webhook.strategy" -}}
{{- if .root.Values.strategy -}}
{{- toYaml .root.Values.strategy -}}
{{- else -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: {{ ternary 0 1 .hostNetwork }}
  maxUnavailable: {{ ternary 1 0 .hostNetwork }}
{{- end -}}
{{- end -}}

{{/* Rejects ports that collide, and an incomplete DNS policy. */}}
{{- define "otel-webhook.checkNetwork" -}}
{{- if eq (int .Values.webhook.port) (int .Values.admin.port) -}}
{{- fail (printf "webhook.port and admin.port are both %d; set different ports" (int .Values.admin.port)) -}}
{{- end -}}
{{- if and (eq .Values.dnsPolicy "None") (not .Values.dnsConfig.nameservers) -}}
{{- fail "dnsPolicy is None; set dnsConfig.nameservers as well" -}}
{{- end -}}
{{- end -}}

{{/* A probe: `probe` of the values, with a GET of `path` if it has no handler. */}}
{{- define "otel-webhook.probe" -}}
{{- $probe := .probe | default dict -}}
{{- $ask := dict "httpGet" (dict "path" .path "port" "admin") -}}
{{- range list "httpGet" "tcpSocket" "exec" "grpc" -}}
{{- if hasKey $probe . -}}
{{- $ask = dict -}}
{{- end -}}
{{- end -}}
{{- toYaml (merge $ask $probe) -}}
{{- end -}}

{{- define "otel-webhook.affinity" -}}
{{- if .root.Values.affinity -}}
{{- toYaml .root.Values.affinity -}}
{{- else -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "otel-webhook.componentLabels" . | nindent 12 }}
{{- end -}}
{{- end -}}

{{/* Topology spread constraints; without a selector among the pods of this component and of one revision. */}}
{{- define "otel-webhook.topologySpreadConstraints" -}}
{{- $selector := dict "matchLabels" (include "otel-webhook.componentLabels" . | fromYaml) -}}
{{- range .root.Values.topologySpreadConstraints }}
{{- $own := dict -}}
{{- if not (hasKey . "labelSelector") -}}
{{- $own = dict "labelSelector" $selector "matchLabelKeys" (list "pod-template-hash") -}}
{{- end }}
- {{ toYaml (merge (deepCopy .) $own) | nindent 2 | trim }}
{{- end }}
{{- end -}}
