{{/*
The owner of the CustomResourceDefinition in the cluster: "" if there is none, or
no cluster (helm template); "ours"; else a description of the owner.

helm rejects a release that contains an object of another owner, so one that is
not ours is omitted. Once it is ours it has to stay in, or helm would delete it.
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

{{/* "true" if the API server converts between versions of the release's CustomResourceDefinition. */}}
{{- define "otel-webhook.converts" -}}
{{- if not (has .Values.crds.storage .Values.crds.served) -}}
{{- fail (printf "crds.storage is %s, which crds.served does not have: %s" .Values.crds.storage (join ", " .Values.crds.served)) -}}
{{- end -}}
{{- if and (gt (len .Values.crds.served) 1) (include "otel-webhook.rendersCrd" .) -}}
true
{{- end -}}
{{- end -}}

{{/* The Service for conversions. A name of a Service has at most 63 characters. */}}
{{- define "otel-webhook.conversionName" -}}
{{- printf "%s-conversion" (include "otel-webhook.fullname" . | trunc 52 | trimSuffix "-") -}}
{{- end -}}

{{/* "true" if the release contains the CustomResourceDefinition. */}}
{{- define "otel-webhook.rendersCrd" -}}
{{- if .Values.crds.install -}}
{{- if or .Values.crds.takeOver (has (include "otel-webhook.crdOwner" .) (list "" "ours")) -}}
true
{{- end -}}
{{- end -}}
{{- end -}}
