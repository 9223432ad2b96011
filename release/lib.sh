# What the scripts of a release share; they source it.

# Sorting and times do not depend on who runs this.
export LC_ALL=C TZ=UTC

fail() {
    echo "${BASH_SOURCE[-1]}: $*" >&2
    exit 1
}

# Names of processors as images and archives have them, by target.
platform() {
    case $1 in
    x86_64-*-linux-*) echo linux/amd64 ;;
    aarch64-*-linux-*) echo linux/arm64 ;;
    x86_64-*-windows-*) echo windows/amd64 ;;
    *) fail "no platform is known for $1" ;;
    esac
}

# A tar archive on standard output: sorted, with one time, one owner and modes that no umask changes.
#   archive FOLDER NAME...
archive() {
    local folder=$1
    shift
    tar --create --directory "$folder" --format ustar --sort name --mtime "@$SOURCE_DATE_EPOCH" \
        --owner 0 --group 0 --numeric-owner --mode u=rwX,go=rX --file - "$@"
}

# Without the name and the time that gzip adds.
packed() { gzip --no-name --best; }

# The only line of a file that sets a key at its beginning, without quotes.
#   setting KEY SEPARATOR FILE
setting() { sed -nE "s/^$1 *$2 *\"?([^\"]*)\"?\$/\1/p" "$3" | head -n 1; }

# Sets `tools`, and `signing` to the flags of cosign that say how to sign. A key signs without any service.
signing() {
    tools=$(release/tools cosign crane)
    signing=(--yes)
    [[ -n ${KEY-} ]] || return 0
    signing+=(--key "$KEY" --signing-config release/no-services.json --trusted-root release/no-root.json)
}

cosign() { "$tools/cosign" "$@"; }
