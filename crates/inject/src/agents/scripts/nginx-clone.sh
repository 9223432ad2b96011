#!/bin/sh
# Copies the configuration of nginx, and notes the server's version.
#   $1  the folder of the configuration
set -eu

conf=/opt/opentelemetry-webserver/source-conf

# A run before may have copied what is no longer there. What belongs to another
# user stays, and is written over.
rm -rf -- "$conf"/..?* "$conf"/.[!.]* "$conf"/* 2>/dev/null || :
if [ -d "$1" ]; then
    cp -rf -- "$1/." "$conf"
else
    printf '%s is no folder; there is nothing to copy\n' "$1" >&2
fi
# "nginx version: nginx/1.27.1 (build)", on standard error
version=$(nginx -v 2>&1) || version=
version=${version##*/}
printf '%s\n' "${version%%[!0-9.]*}" >"$conf/version.txt"
