#!/bin/sh
# `make deps`: installs the Debian packages named on the command line, when any is missing. Where
# there is no apt, checks for the libraries and names their packages instead.
set -eu

if ! command -v apt-get >/dev/null 2>&1; then
    missing=
    for lib in libuv libsodium libcjson libssl $(test "$(uname -s)" = Linux && echo libsystemd); do
        pkg-config --exists "$lib" 2>/dev/null || missing="$missing $lib"
    done
    for tool in cc make pkg-config python3; do
        command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
    done
    if [ -z "$missing" ]; then
        echo "deps: what the build needs is here"
        exit 0
    fi
    cat >&2 <<'EOF'
deps: no apt-get here, so install these yourself, then run make again:
  nix:   nix-shell -p gcc gnumake pkg-config libuv libsodium systemd cjson openssl \
             python3 mandoc socat strace
  brew:  brew install pkg-config libuv libsodium cjson openssl@3 python3 mandoc socat
  dnf:   dnf install gcc make pkgconf-pkg-config libuv-devel libsodium-devel systemd-devel \
             cjson-devel openssl-devel python3 mandoc socat strace systemd-container
EOF
    echo "deps: missing:$missing" >&2
    exit 1
fi

missing=
for package in "$@"; do
    case $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null) in
    ii*) ;;
    *) missing="$missing $package" ;;
    esac
done
if [ -z "$missing" ]; then
    exit 0
fi

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "deps: packages are missing, and only root may install them. As root:" >&2
        echo "  apt-get update && apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    as_root="sudo"
fi
echo "deps: installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! $as_root apt-get update -qq >"$log" 2>&1 ||
    ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        $missing >>"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    echo "deps: apt-get failed (its last lines are above); mend that and run make deps again" >&2
    exit 1
fi
