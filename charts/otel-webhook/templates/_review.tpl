{{/* The webhook's URL for pods of the cluster. */}}
{{- define "otel-webhook.reviewUrl" -}}
{{- $service := printf "https://%s.%s.svc:%v" (include "otel-webhook.fullname" .) .Release.Namespace .Values.service.port -}}
{{- default $service .Values.registration.url | trimSuffix "/" }}/mutate-v1-pod
{{- end -}}

{{/* Labels of pods that send a review. They differ from the selector labels of the webhook. */}}
{{- define "otel-webhook.reviewLabels" -}}
{{- include "otel-webhook.componentLabels" (dict "root" . "component" "review") -}}
{{- end -}}

{{/*
The spec of a pod that sends one review and ends: `root`, `restartPolicy`, and
`authority`, a volume with ca.crt, if the certificate is verified. It shows the
client certificate of certificates.clientCA.testSecretName, if there is one.
*/}}
{{- define "otel-webhook.reviewPod" -}}
{{- $values := .root.Values -}}
{{- $client := $values.certificates.clientCA.testSecretName -}}
restartPolicy: {{ .restartPolicy }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with include "otel-webhook.imagePullSecrets" .root | trim }}
{{ . }}
{{- end }}
securityContext:
  {{- toYaml $values.podSecurityContext | nindent 2 }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: review
    image: {{ include "otel-webhook.image" .root | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    args:
      - check
      - --review={{ include "otel-webhook.reviewUrl" .root }}
      {{- if .authority }}
      - --ca=/authority/ca.crt
      {{- end }}
      {{- if $client }}
      - --client-cert=/client/tls.crt
      - --client-key=/client/tls.key
      {{- end }}
    resources:
      {{- toYaml $values.resources | nindent 6 }}
    securityContext:
      {{- toYaml $values.securityContext | nindent 6 }}
    {{- if or .authority $client }}
    volumeMounts:
      {{- if .authority }}
      - name: authority
        mountPath: /authority
        readOnly: true
      {{- end }}
      {{- if $client }}
      - name: client
        mountPath: /client
        readOnly: true
      {{- end }}
    {{- end }}
{{- if or .authority $client }}
volumes:
  {{- with .authority }}
  - name: authority
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $client }}
  - name: client
    secret:
      secretName: {{ . }}
      items:
        - key: tls.crt
          path: tls.crt
        - key: tls.key
          path: tls.key
  {{- end }}
{{- end }}
{{- end -}}
