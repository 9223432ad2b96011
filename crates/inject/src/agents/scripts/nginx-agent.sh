#!/bin/sh
# Adds the OpenTelemetry module to a copy of nginx' configuration.
#   $1                              the name of the main file
#   OTEL_NGINX_AGENT_CONF           the module's configuration
#   OTEL_NGINX_SERVICE_INSTANCE_ID  what its place holder stands for
conf=/opt/opentelemetry-webserver/source-conf
modules=/opt/opentelemetry-webserver/agent/WebServerModule/Nginx

install_agent
read -r version <"$conf/version.txt" || version=
module=$modules/$version/ngx_http_opentelemetry_module.so
# nginx does not start when a module or its directives are unknown, so the
# configuration stays as it is rather than naming what is not there.
if [ ! -f "$conf/$1" ]; then
    printf 'there is no %s; the module stays out\n' "$1" >&2
elif [ ! -f "$module" ]; then
    printf 'the agent has no module for nginx "%s"; it stays out\n' "$version" >&2
else
    mkdir -p "$conf/conf.d"
    fill_in "${OTEL_NGINX_AGENT_CONF-}" "${OTEL_NGINX_SERVICE_INSTANCE_ID-}" \
        >"$conf/conf.d/opentelemetry_agent.conf"
    add_line "$conf/$1" "load_module $module;" first
    add_line "$conf/$1" "env OTEL_RESOURCE_ATTRIBUTES;" first
fi
