{{/*
The Deployment `name` of a component. `own` are the values that are its own; the others
are the same for all components. `ports` are the names of its ports, each with a value
`port`. `args`, `mounts` and `volumes` are text.
*/}}
{{- define "otel-webhook.deployment" -}}
{{- $values := .root.Values -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "otel-webhook.labels" (dict "root" .root) }}
  {{- include "otel-webhook.annotations" (dict "root" .root "own" .own.deploymentAnnotations) }}
spec:
  replicas: {{ .own.replicaCount }}
  revisionHistoryLimit: {{ $values.revisionHistoryLimit }}
  strategy:
    {{- include "otel-webhook.strategy" . | nindent 4 }}
  selector:
    matchLabels:
      {{- include "otel-webhook.componentLabels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "otel-webhook.podLabels" . | nindent 8 }}
      annotations:
        kubectl.kubernetes.io/default-container: {{ .component }}
        {{- with .own.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ .account }}
      automountServiceAccountToken: true
      # A Service named otel-webhook would become variables named OTEL_WEBHOOK_…,
      # which are flags.
      enableServiceLinks: false
      {{- with include "otel-webhook.imagePullSecrets" .root | trim }}
      {{- . | nindent 6 }}
      {{- end }}
      securityContext:
        {{- toYaml $values.podSecurityContext | nindent 8 }}
      {{- if .hostNetwork }}
      hostNetwork: true
      {{- end }}
      {{- with default (ternary "ClusterFirstWithHostNet" "" .hostNetwork) $values.dnsPolicy }}
      dnsPolicy: {{ . }}
      {{- end }}
      {{- with $values.dnsConfig }}
      dnsConfig:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .graceSeconds }}
      terminationGracePeriodSeconds: {{ . }}
      {{- end }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $values.runtimeClassName }}
      runtimeClassName: {{ . }}
      {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      affinity:
        {{- include "otel-webhook.affinity" . | nindent 8 }}
      {{- with include "otel-webhook.topologySpreadConstraints" . | trim }}
      topologySpreadConstraints:
        {{- . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "otel-webhook.image" .root | quote }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args:
            {{- .args | nindent 12 }}
          {{- with .own.extraEnv }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with .own.extraEnvFrom }}
          envFrom:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            {{- range .ports }}
            - name: {{ . }}
              containerPort: {{ (index $values .).port }}
              protocol: TCP
            {{- end }}
          livenessProbe:
            {{- include "otel-webhook.probe" (dict "probe" $values.livenessProbe "path" "/livez") | nindent 12 }}
          readinessProbe:
            {{- include "otel-webhook.probe" (dict "probe" $values.readinessProbe "path" "/readyz") | nindent 12 }}
          resources:
            {{- toYaml .own.resources | nindent 12 }}
          securityContext:
            {{- toYaml $values.securityContext | nindent 12 }}
          {{- if or .mounts .own.extraVolumeMounts }}
          volumeMounts:
            {{- with .mounts }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with .own.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- end }}
      {{- if or .volumes .own.extraVolumes }}
      volumes:
        {{- with .volumes }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with .own.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
{{- end -}}
