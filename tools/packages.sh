#!/bin/sh
# Installs the Debian packages that a purpose needs, if any is missing.  Usage: tools/packages.sh demo|test
# As root or with password-free sudo it installs; otherwise it prints the one line to run and stops with status 1.
set -eu
build="gcc make libc6-dev libjpeg62-turbo-dev libpng-dev zlib1g-dev nettle-dev libutf8proc-dev"
client="curl jq"
lint="clang clang-tidy libclang-rt-14-dev cppcheck"
case "${1:-}" in
demo) packages="$build $client" ;;
test) packages="$build $client $lint libcunit1-dev strace python3 python3-venv" ;;
*) echo "usage: tools/packages.sh demo|test" >&2; exit 2 ;;
esac

missing=""
for package in $packages; do
    status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$status" = "install ok installed" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

install="apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ "$(id -u)" -eq 0 ]; then
    echo "installing:$missing"
    sh -c "$install" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    echo "installing with sudo:$missing"
    sudo -n sh -c "$install" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
else
    echo "Missing Debian packages. Run this once, then try again:" >&2
    echo "  sudo sh -c '$install'" >&2
    exit 1
fi
