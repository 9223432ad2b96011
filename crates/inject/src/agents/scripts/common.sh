#!/bin/sh
# What the init containers of all web servers' agents need. Values that users
# set are text all the way: no pattern, no command, no option.
set -eu

# Copies the agent, and tells it where its log goes.
install_agent() {
    agent=/opt/opentelemetry-webserver/agent
    logging=$agent/conf/opentelemetry_sdk_log4cxx.xml
    cp -rf /opt/opentelemetry/* "$agent"
    if [ -f "$logging.template" ]; then
        sed "s,__agent_log_dir__,$agent/logs,g" "$logging.template" >"$logging"
    fi
}

# Prints $1 with $2 for each place holder.
fill_in() {
    mark='<<SID-PLACEHOLDER>>'
    rest=$1
    while [ "$rest" != "${rest#*"$mark"}" ]; do
        printf '%s' "${rest%%"$mark"*}$2"
        rest=${rest#*"$mark"}
    done
    printf '%s\n' "$rest"
}

# Adds the line $2 to the file $1, at its start or end as $3 says, unless a
# run before did. The file may belong to somebody else, so it is replaced.
add_line() {
    if grep -qxF -e "$2" "$1"; then
        return
    fi
    # What a run that was killed has left may be read-only.
    cp -pf "$1" "$1.otel"
    chmod u+w "$1.otel"
    case $3 in
    first) { printf '%s\n' "$2" && cat "$1"; } >"$1.otel" ;;
    last) { cat "$1" && printf '\n%s\n' "$2"; } >"$1.otel" ;;
    esac
    mv -f "$1.otel" "$1"
}
