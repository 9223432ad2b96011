{{- define "otel-webhook.registrationName" -}}
{{- default (include "otel-webhook.fullname" .) .Values.registration.name -}}
{{- end -}}

{{/* Annotations of a webhook configuration. */}}
{{- define "otel-webhook.registrationAnnotations" -}}
{{- $own := merge (dict) (include "otel-webhook.injectCa" . | fromYaml) .Values.registration.annotations -}}
{{- include "otel-webhook.annotations" (dict "root" . "own" $own) -}}
{{- end -}}

{{/* The annotation by which cert-manager sets caBundle, or nothing. */}}
{{- define "otel-webhook.injectCa" -}}
{{- if eq .Values.certificates.mode "cert-manager" -}}
cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "otel-webhook.fullname" . }}
{{- end -}}
{{- end -}}

{{/*
clientConfig for one path, of the Service `service` if it is not the usual one. caBundle is rendered only with a value: an empty one
would overwrite the value of cert-manager or of the webhook itself.
*/}}
{{- define "otel-webhook.clientConfig" -}}
{{- $root := .root -}}
clientConfig:
{{- with $root.Values.registration.url }}
  url: {{ printf "%s%s" (trimSuffix "/" .) $.path }}
{{- else }}
  service:
    namespace: {{ $root.Release.Namespace }}
    name: {{ default (include "otel-webhook.fullname" $root) .service }}
    path: {{ .path }}
    port: {{ $root.Values.service.port }}
{{- end }}
{{- if eq $root.Values.certificates.mode "files" }}
  caBundle: {{ include "otel-webhook.caBundle" $root }}
{{- end }}
{{- end -}}

{{/* namespaceSelector: the given one, without the namespaces that are always excluded. */}}
{{- define "otel-webhook.namespaceSelector" -}}
namespaceSelector:
{{- with .selector.matchLabels }}
  matchLabels:
    {{- toYaml . | nindent 4 }}
{{- end }}
  matchExpressions:
    # kube-system and the webhook's own namespace never depend on it.
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: {{ toJson (uniq .without) }}
{{- with .selector.matchExpressions }}
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{/*
The matchCondition of requests whose warnings a user sees. With
--use-service-account-credentials, each controller of kube-controller-manager has
a service account in kube-system. By the user's name, which every request has;
it may have no groups.
*/}}
{{- define "otel-webhook.byAUser" -}}
name: by-a-user
expression: "request.userInfo.username != 'system:kube-controller-manager' && !request.userInfo.username.startsWith('system:serviceaccount:kube-system:')"
{{- end -}}

{{/* matchConditions of workloads. */}}
{{- define "otel-webhook.workloadConditions" -}}
{{- $conditions := list
      (fromYaml (include "otel-webhook.byAUser" .))
      (dict "name" "without-controller"
        "expression" "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller)") }}
matchConditions:
  {{- toYaml (concat $conditions .matchConditions) | nindent 2 }}
{{- end -}}

{{/*
matchConditions of pods. A pod without annotations or labels has no such map, and
a condition that fails to evaluate is treated as a failed call of the webhook.
*/}}
{{- define "otel-webhook.podConditions" -}}
{{- $annotated := dict
      "name" "opted-in"
      "expression" "has(object.metadata.annotations) && object.metadata.annotations.exists(name, name.startsWith('instrumentation.opentelemetry.io/inject-')) || has(object.metadata.labels) && object.metadata.labels.exists(name, name.startsWith('instrumentation.opentelemetry.io/inject-'))" -}}
{{- $conditions := .matchConditions -}}
{{- if eq .shape "annotated" -}}
{{- $conditions = prepend $conditions $annotated -}}
{{- end -}}
{{- with $conditions }}
matchConditions:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
