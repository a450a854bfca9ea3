#!/bin/sh
# Installs plimsoll from a release: sh install.sh [--from DIRECTORY-OR-URL] [--to DIRECTORY]
# It checks the archive against checksums.txt before it replaces anything.
set -eu
from=$(dirname "$0")
to=/usr/local/bin
while [ $# -gt 0 ]; do
	case "$1" in
	--from) from=${2:?--from needs a directory or a URL}; shift 2 ;;
	--to) to=${2:?--to needs a directory}; shift 2 ;;
	*) echo "install.sh: unknown argument $1; it takes --from DIRECTORY-OR-URL and --to DIRECTORY" >&2; exit 2 ;;
	esac
done
os=$(uname -s | tr '[:upper:]' '[:lower:]')
arch=$(uname -m)
case "$arch" in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fetch() {
	case "$from" in
	http://* | https://*)
		if command -v curl >/dev/null; then curl -fsSL -o "$work/$1" "$from/$1"; else wget -qO "$work/$1" "$from/$1"; fi ;;
	*) cp "$from/$1" "$work/$1" ;;
	esac
}
fetch checksums.txt
archive=$(sed -n "s/^[0-9a-f]\{64\}  \(plimsoll_.*_${os}_${arch}\.tar\.gz\)\$/\1/p" "$work/checksums.txt" | head -n 1)
if [ -z "$archive" ]; then
	echo "install.sh: there is no archive for $os/$arch in $from/checksums.txt" >&2
	exit 1
fi
fetch "$archive"
sum() { if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1; }
want=$(sed -n "s/  $archive\$//p" "$work/checksums.txt")
if [ "$(sum "$work/$archive")" != "$want" ]; then
	echo "install.sh: $archive is damaged: its SHA-256 is not the one in checksums.txt; nothing was changed" >&2
	exit 1
fi
tar -xzf "$work/$archive" -C "$work"
mkdir -p "$to"
# A rename replaces the program at once, also while it runs.
cp "$work/${archive%.tar.gz}/plimsoll" "$to/.plimsoll.new"
chmod 755 "$to/.plimsoll.new"
mv -f "$to/.plimsoll.new" "$to/plimsoll"
"$to/plimsoll" version
