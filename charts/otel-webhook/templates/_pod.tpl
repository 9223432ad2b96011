{{/* Arguments of the server. */}}
{{- define "otel-webhook.args" -}}
{{- include "otel-webhook.checkNetwork" . -}}
{{- $injection := .Values.injection -}}
- serve
- --listen=[::]:{{ .Values.webhook.port }}
- --admin-listen=[::]:{{ .Values.admin.port }}
- --shutdown-delay={{ .Values.shutdown.delaySeconds }}
- --shutdown-grace={{ .Values.shutdown.graceSeconds }}
- --log-format={{ .Values.logs.format }}
- {{ printf "--log=%s" .Values.logs.level | quote }}
{{ include "otel-webhook.certificateArgs" . }}
- --languages={{ join "," $injection.languages }}
- --stamp={{ $injection.stamp }}
{{- if not (kindIs "invalid" $injection.safeToEvict) }}
- --safe-to-evict={{ $injection.safeToEvict }}
{{- end }}
- --init-resources={{ $injection.initResources }}
- --cross-namespace={{ $injection.crossNamespace }}
{{- if $injection.previewWarnings }}
- --preview-warnings
{{- end }}
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
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The default Instrumentation as namespace/name, or nothing. */}}
{{- define "otel-webhook.defaultInstrumentation" -}}
{{- with .Values.defaultInstrumentation -}}
{{- if and .enabled .existing -}}
{{- fail "defaultInstrumentation.existing names one that is there already, and defaultInstrumentation.enabled makes one; only one of the two can be the default" -}}
{{- end -}}
{{- if .enabled -}}
{{- printf "%s/%s" $.Release.Namespace .name -}}
{{- else -}}
{{- .existing -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels of the pods. Those by which they are chosen come first: another value would lose the pods. */}}
{{- define "otel-webhook.podLabels" -}}
{{- $own := include "otel-webhook.selectorLabels" . | fromYaml -}}
{{- toYaml (merge $own .Values.podLabels .Values.commonLabels) -}}
{{- end -}}

{{/* How pods are replaced. Two of them do not fit on a node whose ports they use. */}}
{{- define "otel-webhook.strategy" -}}
{{- if .Values.strategy -}}
{{- toYaml .Values.strategy -}}
{{- else -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: {{ ternary 0 1 .Values.hostNetwork }}
  maxUnavailable: {{ ternary 1 0 .Values.hostNetwork }}
{{- end -}}
{{- end -}}

{{/* Refuses ports that collide, and a DNS policy that is not complete. */}}
{{- define "otel-webhook.checkNetwork" -}}
{{- if eq (int .Values.webhook.port) (int .Values.admin.port) -}}
{{- fail (printf "webhook.port and admin.port are both %d; two servers cannot share a port" (int .Values.admin.port)) -}}
{{- end -}}
{{- if eq (int .Values.service.port) 8080 -}}
{{- fail "service.port is 8080, which is the Service's port of the metrics; another one is valid, such as 443" -}}
{{- end -}}
{{- if and (eq .Values.dnsPolicy "None") (not .Values.dnsConfig.nameservers) -}}
{{- fail "dnsPolicy is None, which needs dnsConfig.nameservers" -}}
{{- end -}}
{{- end -}}

{{/* A probe: `probe` of the values, with a GET of `path` where it does not say how to ask. */}}
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
{{- if .Values.affinity -}}
{{- toYaml .Values.affinity -}}
{{- else -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "otel-webhook.selectorLabels" . | nindent 12 }}
{{- end -}}
{{- end -}}

{{/* Spread, counted among the pods of this release and of one revision where nothing else is said. */}}
{{- define "otel-webhook.topologySpreadConstraints" -}}
{{- $selector := dict "matchLabels" (include "otel-webhook.selectorLabels" . | fromYaml) -}}
{{- range .Values.topologySpreadConstraints }}
{{- $own := dict -}}
{{- if not (hasKey . "labelSelector") -}}
{{- $own = dict "labelSelector" $selector "matchLabelKeys" (list "pod-template-hash") -}}
{{- end }}
- {{ toYaml (merge (deepCopy .) $own) | nindent 2 | trim }}
{{- end }}
{{- end -}}
