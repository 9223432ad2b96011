{{/*
Seconds before the expiry of the certificate (`of`: certificate) or of the managed CA
(`of`: ca) at which an alert fires, and how long it waits. Half of the time after
which a renewal is overdue, and seven days at most.
*/}}
{{- define "otel-webhook.expiry" -}}
{{- $certificates := .root.Values.certificates -}}
{{- $days := .root.Values.prometheusRule.certificateExpiryDays -}}
{{- $seconds := 604800.0 -}}
{{- if not (kindIs "invalid" $days) -}}
{{- $seconds = mulf $days 86400 -}}
{{- else if eq $certificates.mode "managed" -}}
{{- $lifetime := ternary $certificates.managed.caLifetime $certificates.managed.lifetime (eq .of "ca") -}}
{{- $seconds = minf $seconds (divf (include "otel-webhook.seconds" $lifetime) 6) -}}
{{- else if eq $certificates.mode "cert-manager" -}}
{{- $seconds = minf $seconds (divf (include "otel-webhook.seconds" $certificates.certManager.renewBefore) 2) -}}
{{- end -}}
seconds: {{ max 1 (int64 $seconds) }}
wait: {{ min 900 (max 1 (int64 (divf $seconds 4))) }}s
{{- end -}}

{{/* Seconds of a duration such as `90d`, `1h30m` or `2160h`. */}}
{{- define "otel-webhook.seconds" -}}
{{- $units := dict "d" 86400.0 "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001 -}}
{{- $seconds := 0.0 -}}
{{- range regexFindAll "[0-9.]+(ms|[dhms])" . -1 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $seconds = addf $seconds (mulf (trimSuffix $unit .) (get $units $unit)) -}}
{{- end -}}
{{- $seconds -}}
{{- end -}}
