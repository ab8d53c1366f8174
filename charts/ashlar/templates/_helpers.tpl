{{- define "ashlar.labels" -}}
app.kubernetes.io/name: ashlar-hooks
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "ashlar.selector" -}}
app.kubernetes.io/name: ashlar-hooks
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ashlar.hooks" -}}
{{ .Release.Name }}-hooks
{{- end }}

{{- define "ashlar.metacontroller" -}}
{{ .Release.Name }}-metacontroller
{{- end }}

{{- define "ashlar.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "ashlar.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* Child kinds that not every cluster has: [apiVersion, resource, strategy]. A controller that names a kind which
is not served does not start. */ -}}
{{- define "ashlar.optionalKinds" -}}
- {apiVersion: monitoring.coreos.com/v1, resource: podmonitors, kind: PodMonitor}
- {apiVersion: keda.sh/v1alpha1, resource: scaledobjects, kind: ScaledObject}
- {apiVersion: leaderworkerset.x-k8s.io/v1, resource: leaderworkersets, kind: LeaderWorkerSet}
- {apiVersion: resource.k8s.io/v1, resource: resourceclaimtemplates, kind: ResourceClaimTemplate}
{{- end }}
