# What the scripts share that make podman's settings and images; to be sourced.
#
# The caller names itself in `me` and sets `here` (its folder) and `cache` (where
# what it makes is kept). `allow` is the variable that allows to go without it.

allow=${allow-OTEL_WEBHOOK_ALLOW_NO_PODMAN}

say() { echo "$me: $*" >&2; }

install() {
    local package missing=()
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q ' installed$' || missing+=("$package")
    done
    ((${#missing[@]} == 0)) && return
    say "installing ${missing[*]}"
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } >&2
}

# Installs packages, podman among them. No container without root: the settings
# of those without it differ too much.
podman_or_exit() {
    if (($(id -u) == 0)) && install "$@"; then
        return
    fi
    say "podman and what it needs cannot be had here: that takes root and Debian's packages"
    if [[ -n ${!allow-} ]]; then
        say "NOTHING IS RUN IN REAL CONTAINERS, as $allow allows"
        exit 0
    fi
    exit 1
}

# Installs the packages of programs that are not on the PATH: PROGRAM:PACKAGE...
programs() {
    local program
    for program in "$@"; do
        command -v "${program%:*}" >/dev/null || install "${program#*:}"
    done
}

# Sets `home` to the folder for what standard input says, which is all that can
# change an image.
home_for() {
    local key
    key=$(sha256sum | cut -c 1-12)
    mkdir -p "$cache/$key"
    home=$(cd "$cache/$key" && pwd)
    settings
}

settings() {
    cat >"$home/containers.conf" <<EOF
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=30000:30000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
EOF
    # Images and containers of its own: nobody else's are seen or touched.
    cat >"$home/storage.conf" <<EOF
[storage]
driver = "overlay"
graphroot = "$home/storage"
runroot = "$home/state"
EOF
    export CONTAINERS_CONF=$home/containers.conf CONTAINERS_STORAGE_CONF=$home/storage.conf
}

# Runs functions in a folder that is empty and removed, unless that was done for
# `home`. One at a time; who waited finds the work done.
make_once() {
    [[ ! -e $home/complete ]] || return 0
    (
        flock 9
        if [[ ! -e $home/complete ]]; then
            say "making images (only the first time)"
            rm -rf "$home/build"
            mkdir "$home/build"
            cd "$home/build"
            for work in "$@"; do
                "$work"
            done
            cd "$home"
            rm -rf build
            touch complete
        fi
    ) 9>"$cache/.lock"
}

# Adds programs, at their own paths, with the libraries that they are linked with.
add() {
    local root=$1
    shift
    cp -L --parents "$@" "$root"
    libraries "$root" "$@"
}

# A library without a path is found next to the one that asks for it.
libraries() {
    local root=$1
    shift
    ldd "$@" | sed -nE 's#^\s*(\S+ => )?(/\S+) \(0x.*#\2#p' | grep -v "^$home" | sort -u |
        xargs -r cp -L --parents -t "$root"
}

shell() {
    local name
    mkdir -p "$1/bin"
    cp /bin/busybox "$1/bin/"
    for name in sh cp cat sed grep mv mkdir chmod sleep; do
        ln -s busybox "$1/bin/$name"
    done
}

# Makes an image of FOLDER/files: FOLDER NAME [INSTRUCTION...], with further instructions of its Containerfile.
image() {
    printf '%s\n' 'FROM scratch' 'COPY files/ /' "${@:3}" >"$1/Containerfile"
    podman build --isolation chroot --quiet --tag "$2" "$1" >&2
}

# Makes a Java runtime with modules at ROOT/jre.
java_runtime() {
    local root=$1
    mkdir -p "$root"
    jlink --add-modules "$2" --strip-debug --no-header-files --no-man-pages --output "$root/jre" >&2
    libraries "$root" "$root/jre/bin/java" "$root"/jre/lib/*.so "$root/jre/lib/server/libjvm.so"
}

# The Java agent of a version, as the operator's image holds it.
java_agent() {
    shell "$1"
    mvn -q -B -Dstyle.color=never dependency:copy -DoutputDirectory="$PWD/$1" -Dmdep.stripVersion=true \
        -Dartifact="io.opentelemetry.javaagent:opentelemetry-javaagent:$2" >&2
    mv "$1/opentelemetry-javaagent.jar" "$1/javaagent.jar"
}

# A second agent, which an image may have already.
second_java_agent() {
    javac -d second "$containers/Second.java" >&2
    printf 'Premain-Class: Second\n' >second.mf
    jar --create --file "$1" --manifest second.mf -C second . >&2
}

containers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
