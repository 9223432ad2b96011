{{/*
Whose the CustomResourceDefinition in the cluster is: "" where there is none, or
no cluster to ask (helm template); "ours"; else words that say whose.

helm refuses a release that has an object of somebody else in it, so one that is
not ours is left out. Once ours it has to stay in, or helm would delete it.
*/}}
{{- define "otel-webhook.crdOwner" -}}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "instrumentations.opentelemetry.io" -}}
{{- $annotations := .metadata.annotations | default dict -}}
{{- $name := index $annotations "meta.helm.sh/release-name" -}}
{{- $namespace := index $annotations "meta.helm.sh/release-namespace" -}}
{{- if and (eq $.Release.Name (toString $name)) (eq $.Release.Namespace (toString $namespace)) -}}
ours
{{- else if $name -}}
the release {{ $name }} in namespace {{ $namespace }}
{{- else -}}
no release of helm
{{- end -}}
{{- end -}}
{{- end -}}

{{/* "true" where the release has the CustomResourceDefinition in it. */}}
{{- define "otel-webhook.rendersCrd" -}}
{{- if .Values.crds.install -}}
{{- if or .Values.crds.takeOver (has (include "otel-webhook.crdOwner" .) (list "" "ours")) -}}
true
{{- end -}}
{{- end -}}
{{- end -}}
