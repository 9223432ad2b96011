#!/bin/sh
# Adds the OpenTelemetry module to a copy of Apache HTTPD's configuration.
#   $1                          the folder in which the server has the copy
#   OTEL_APACHE_AGENT_CONF      the module's configuration
#   APACHE_SERVICE_INSTANCE_ID  what its place holder stands for
conf=/opt/opentelemetry-webserver/source-conf
module_conf=opentemetry_agent.conf

# The clone copies without -f. Where it runs again, it writes over its first
# copies, so they must not be read-only. Those of another user stay as they are.
chmod -R u+w "$conf" 2>/dev/null || :
install_agent
fill_in "${OTEL_APACHE_AGENT_CONF-}" "${APACHE_SERVICE_INSTANCE_ID-}" >"$conf/$module_conf"
if [ -f "$conf/httpd.conf" ]; then
    add_line "$conf/httpd.conf" "Include $1/$module_conf" last
else
    printf '%s has no httpd.conf; the module stays out\n' "$1" >&2
fi
