{{/* The Secret that holds the serving certificate. */}}
{{- define "otel-webhook.certificateSecret" -}}
{{- $name := include "otel-webhook.fullname" . -}}
{{- with .Values.certificates -}}
{{- if eq .mode "managed" -}}
{{- default (printf "%s-certificates" $name) .managed.secretName -}}
{{- else if eq .mode "cert-manager" -}}
{{- default (printf "%s-tls" $name) .certManager.secretName -}}
{{- else -}}
{{- required "certificates.files.secretName is required if certificates.mode is files: set it to the name of a Secret with tls.crt and tls.key" .files.secretName -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* caBundle of the mode "files", as the API server expects it: base64 of PEM. */}}
{{- define "otel-webhook.caBundle" -}}
{{- $secretName := include "otel-webhook.certificateSecret" . -}}
{{- $given := required "certificates.files.caBundle is required if certificates.mode is files: set it to the CA bundle, as PEM or as base64 of PEM" (trim .Values.certificates.files.caBundle) -}}
{{- $pem := $given -}}
{{- if not (contains "-----BEGIN CERTIFICATE-----" $given) -}}
{{- $pem = b64dec (regexReplaceAll "\\s" $given "") -}}
{{- end -}}
{{- if not (contains "-----BEGIN CERTIFICATE-----" $pem) -}}
{{- fail "certificates.files.caBundle has no certificate in it; set it to PEM (-----BEGIN CERTIFICATE-----) or base64 of PEM" -}}
{{- end -}}
{{- b64enc (printf "%s\n" (trim $pem)) -}}
{{- end -}}

{{/* Arguments for the source of the certificate. */}}
{{- define "otel-webhook.certificateArgs" -}}
{{- if eq .Values.certificates.mode "managed" -}}
- --tls-managed={{ include "otel-webhook.certificateSecret" . }}
- --webhook-configuration={{ include "otel-webhook.registrationName" . }}
- --namespace={{ .Release.Namespace }}
- --service={{ include "otel-webhook.fullname" . }}
- --cluster-domain={{ .Values.clusterDomain }}
- --tls-lifetime={{ .Values.certificates.managed.lifetime }}
- --tls-ca-lifetime={{ .Values.certificates.managed.caLifetime }}
- --tls-propagation={{ .Values.certificates.managed.propagation }}
{{- if include "otel-webhook.converts" . }}
- --conversion-service={{ include "otel-webhook.conversionName" . }}
{{- end }}
{{- range .Values.certificates.extraNames }}
- {{ printf "--tls-name=%s" . | quote }}
{{- end }}
{{- else -}}
- --tls-cert=/certificates/tls.crt
- --tls-key=/certificates/tls.key
{{- end -}}
{{- with .Values.certificates.clientCA }}
{{- if .secretName }}
- --client-ca=/client-ca/ca.crt
{{- range .names }}
- {{ printf "--client-name=%s" . | quote }}
{{- end }}
{{- else if or .names .testSecretName -}}
{{- fail "certificates.clientCA.names and testSecretName have no effect without certificates.clientCA.secretName; set it to a Secret with ca.crt" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The volume mounts of the server's files, or nothing. */}}
{{- define "otel-webhook.certificateMounts" -}}
{{- if ne .Values.certificates.mode "managed" }}
- name: certificates
  mountPath: /certificates
  readOnly: true
{{- end }}
{{- if .Values.certificates.clientCA.secretName }}
- name: client-ca
  mountPath: /client-ca
  readOnly: true
{{- end }}
{{- end -}}

{{/* Their volumes. Of the client CA, the public part alone. */}}
{{- define "otel-webhook.certificateVolumes" -}}
{{- if ne .Values.certificates.mode "managed" }}
- name: certificates
  secret:
    secretName: {{ include "otel-webhook.certificateSecret" . }}
    items:
      - key: tls.crt
        path: tls.crt
      - key: tls.key
        path: tls.key
{{- end }}
{{- with .Values.certificates.clientCA.secretName }}
- name: client-ca
  secret:
    secretName: {{ . }}
    items:
      - key: ca.crt
        path: ca.crt
{{- end }}
{{- end -}}
