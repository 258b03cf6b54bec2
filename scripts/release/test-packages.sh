#!/bin/bash
# Installs the packages that scripts/release/package.sh made and runs them, each in a root that has no Rust: a file is
# encoded, shards are lost, it is decoded and compared.
#
#   scripts/release/test-packages.sh [FOLDER]
#
# Everything in FOLDER is tested, target/packages if it is not given. The .deb, the tarball for x86_64, the wheel and
# install.sh go into a root of nothing but Debian's essential packages (and Python, and OpenSSH's client, for the last
# two); binaries of other machines are emulated. install.sh is also tried with releases that somebody changed. Recipes
# are read by what Debian has of their systems, and the PKGBUILD is built if BUILD is set. As root on Debian; what it
# needs it installs.
#
#   BUILD   build the sources by the PKGBUILD, which takes minutes
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

case ${1-} in -h | --help) show_help ;; esac
[ $# -le 1 ] || usage
may_install || refuse "it takes root, on Debian"
cd "$root"
folder=$(realpath -e -- "${1:-target/packages}")
version=$(of_workspace version)
make_scratch
chmod 755 "$scratch"
passed=0
note() { echo "test-packages: $*"; passed=$((passed + 1)); }

# machine_of NAME: the machine in the name of a package, as the kernel calls it.
machine_of() { sed 's/.*\(x86_64\|aarch64\|armv7\|riscv64\).*/\1/' <<< "$1"; }

# enter ROOT MACHINE PROGRAM ARGUMENTS…: in ROOT, with an emulator where the machine is another.
enter() {
    local inside=$1 emulator=''
    case $2 in aarch64) emulator=aarch64 ;; armv7) emulator=arm ;; riscv64) emulator=riscv64 ;; esac
    shift 2
    if [ -n "$emulator" ]; then
        need "qemu-$emulator-static" qemu-user-static
        [ -x "$inside/qemu" ] || install -m 755 "$(command -v "qemu-$emulator-static")" "$inside/qemu"
        set -- /qemu "$@"
    fi
    # Nothing of this environment: the root has nothing else than what was installed. A time limit, since emulators may
    # hang.
    timeout 300 env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin chroot "$inside" "$@"
}

# round_trip ROOT MACHINE PROGRAM: encodes, loses, decodes; containers, and stores where the machine has them.
round_trip() {
    local inside=$1 work=$1/trial known=''
    mkdir -p "$work"
    head -c 3000000 "$scratch/payload" > "$work/file"
    # Names are full paths, since chroot does not choose the folder that a program begins in.
    run() { enter "$inside" "$2" "$3" "${@:4}"; }
    [ "$(run "$@" --version)" = "fec $version" ] || fail "$2: another version"
    known=$(run "$@" encode -q /trial/file -k 10 -m 4)
    [ "${#known}" = 64 ] || fail "$2: no root: $known"
    [ "$known" = "$(cat "$scratch/root" 2> /dev/null || echo "$known")" ] || fail "$2: another root than the package before"
    echo "$known" > "$scratch/root"
    rm "$work"/file.shards/*.00[0-3].shard
    run "$@" decode -q /trial/file.shards -o /trial/back --root "$known"
    cmp "$work/file" "$work/back"
    run "$@" encode -q /trial/file -k 10 -m 4 -o /trial/file.fec > /dev/null
    printf rot | dd of="$work/file.fec" bs=1 seek=1000000 conv=notrunc status=none
    run "$@" decode -q /trial/file.fec -o /trial/other
    cmp "$work/file" "$work/other"
    if [ "$2" = x86_64 ]; then
        mkdir "$work/a" "$work/b" "$work/c"
        known=$(run "$@" encode -q /trial/file -k 2 -m 1 --to /trial/a --to /trial/b --to /trial/c)
        rm -r "$work/b"
        run "$@" decode -q --root "$known" --from /trial/a --from /trial/b --from /trial/c -o /trial/stored
        cmp "$work/file" "$work/stored"
        # A name has to be looked up, in a binary that brings its own C library: nobody answers there, which is exit
        # code 4.
        local code=0
        run "$@" verify -q --root "$known" --from "s3://bucket/p,endpoint=http://localhost:9" > "$scratch/said" 2>&1 || code=$?
        [ "$code" = 4 ] || { cat "$scratch/said" >&2; fail "$2: a store that does not answer: exit code $code"; }
    else
        ! run "$@" encode -q /trial/file -k 2 -m 1 --to /trial/a > "$scratch/said" 2>&1 || fail "$2: has stores"
        grep 'has no stores' "$scratch/said" > /dev/null
    fi
    rm -r "$work"
}

# pages PREFIX: manual pages are found by man and read without a complaint, and there are completions.
pages() {
    local page pages
    need man man-db
    for page in fec fec-encode fec-bench-link; do
        pages=$(MANPATH=$1/share/man man -w "$page")
        [[ $pages = "$1/share/man/man1/$page.1"* ]] || fail "no page $page: $pages"
        MANWIDTH=80 man --warnings -P cat -l "$pages" 2> "$scratch/said" | grep '^DESCRIPTION' > /dev/null || fail "$page is no page"
        [ ! -s "$scratch/said" ] || { cat "$scratch/said" >&2; fail "$page: a warning"; }
    done
    bash -n "$1/share/bash-completion/completions/fec"
    bash -c '. "$1" && complete -p fec' bash "$1/share/bash-completion/completions/fec" | grep -e '-F _fec fec$' > /dev/null ||
        fail "bash does not complete fec"
    cat "$1"/share/zsh/*/_fec | grep '^#compdef fec$' > /dev/null || fail "zsh does not complete fec"
    grep '^complete -c fec ' "$1/share/fish/vendor_completions.d/fec.fish" > /dev/null || fail "fish does not complete fec"
}

# lists_packages FILE MACHINE: it is a list of what is in the binary, in CycloneDX, and is of this version.
lists_packages() {
    python3 - "$1" "$version" "$2" << 'EOF' || fail "$1 is no list of packages"
import json, re, sys
bom = json.load(open(sys.argv[1]))
assert bom["bomFormat"] == "CycloneDX" and bom["metadata"]["component"]["version"] == sys.argv[2]
names = {part["name"] for part in bom["components"]}
# Tests need snapbox; boards do without stores and AWS-LC.
assert {"fec-core", "blake3", "clap"} <= names and "snapbox" not in names, names
assert {"fec-stores", "aws-lc-rs"} & names == ({"fec-stores", "aws-lc-rs"} if sys.argv[3] == "x86_64" else set()), names
for part in bom["components"]:
    assert part["purl"].startswith("pkg:cargo/") and part["licenses"], part
    assert part["name"].startswith("fec") or re.fullmatch("[0-9a-f]{64}", part["hashes"][0]["content"]), part
EOF
}

# has_units FOLDER: systemd takes the units in it.
has_units() {
    need systemd-analyze systemd
    systemd-analyze verify --man=no "$1/fec-verify@.timer" > "$scratch/said" 2>&1 || true
    ! grep 'fec-verify' "$scratch/said" | grep -v 'not executable' >&2 || fail "systemd does not take the units in $1"
}

# essential: a root of Debian's essential packages, made once; with Python if there is a wheel.
essential() {
    local include=() release
    [ ! -d "$scratch/essential" ] || return 0
    need mmdebstrap mmdebstrap
    if grep '\.whl$' "$scratch/there" > /dev/null; then include+=(--include=python3-minimal); fi
    if grep -x install.sh "$scratch/there" > /dev/null; then include+=(--include=openssh-client); fi
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    mmdebstrap --quiet --mode=root --variant=essential "${include[@]}" "$release" "$scratch/essential" >&2
}

tarball() {
    local name=${1%.tar.gz} machine inside
    machine=$(machine_of "$1")
    tar -tvzf "$folder/$1" > "$scratch/list"
    ! awk '$2 != "0/0"' "$scratch/list" | grep . >&2 || fail "$1: somebody's files"
    awk '{ print $6 }' "$scratch/list" | LC_ALL=C sort -c || fail "$1: not in order"
    inside=$scratch/tarball-$machine
    if [ "$machine" = x86_64 ]; then
        essential
        inside=$scratch/essential
    fi
    mkdir -p "$inside/usr/local"
    tar -xzf "$folder/$1" -C "$inside/usr/local" --strip-components=1
    local file
    for file in README.md LICENSE LICENSE-MIT LICENSE-APACHE install.md; do
        [ -s "$inside/usr/local/share/doc/fec/$file" ] || fail "$1: no $file"
    done
    pages "$inside/usr/local"
    lists_packages "$inside/usr/local/share/doc/fec/sbom.cdx.json" "$machine"
    has_units "$inside/usr/local/lib/systemd/system"
    round_trip "$inside" "$machine" /usr/local/bin/fec
    # cargo binstall looks for it under this name.
    grep "^pkg-url = .*/fec-{ version }-\({ target }\|${name#fec-"$version"-}\)\.tar\.gz\"" crates/fec-cli/Cargo.toml > /dev/null
    rm -r "${inside:?}/usr/local"
    note "$1: unpacked and run"
}

debian() {
    local before=$scratch/dpkg-before
    essential
    find "$scratch/essential" -xdev -path "$scratch/essential/var" -prune -o -print | LC_ALL=C sort > "$before"
    cp "$folder/$1" "$scratch/essential/fec.deb"
    enter "$scratch/essential" native /usr/bin/dpkg -i /fec.deb > "$scratch/said" 2>&1 || { cat "$scratch/said" >&2; fail "dpkg -i $1"; }
    rm "$scratch/essential/fec.deb"
    pages "$scratch/essential/usr"
    lists_packages "$scratch/essential/usr/share/doc/fec/sbom.cdx.json" "$(uname -m)"
    has_units "$scratch/essential/usr/lib/systemd/system"
    round_trip "$scratch/essential" "$(uname -m)" /usr/bin/fec
    enter "$scratch/essential" native /usr/bin/dpkg --purge fec > /dev/null
    find "$scratch/essential" -xdev -path "$scratch/essential/var" -prune -o -print | LC_ALL=C sort | diff "$before" - ||
        fail "$1: something is left behind"
    note "$1: installed by dpkg, run, and removed"
}

image() {
    local machine inside=$scratch/image
    machine=$(machine_of "$1")
    need skopeo skopeo
    # Both ways to read the file give the same image.
    skopeo --insecure-policy copy --quiet "oci-archive:$folder/$1" "oci:$scratch/layout:image"
    skopeo inspect --config "oci-archive:$folder/$1" > "$scratch/one"
    skopeo inspect --config "docker-archive:$folder/$1" | diff "$scratch/one" -
    grep '"Entrypoint":\["/usr/bin/fec"\]' <(tr -d ' \n' < "$scratch/one") > /dev/null
    mkdir "$inside"
    skopeo --insecure-policy copy --quiet "docker-archive:$folder/$1" "dir:$scratch/copied"
    python3 - "$scratch/copied" "$inside" << 'EOF'
import json, pathlib, sys, tarfile
copied, inside = map(pathlib.Path, sys.argv[1:])
for layer in json.loads((copied / "manifest.json").read_text())["layers"]:
    with tarfile.open(copied / layer["digest"].removeprefix("sha256:")) as tar:
        tar.extractall(inside, filter="fully_trusted")
EOF
    [ "$(stat -c %a "$inside/tmp")" = 1777 ]
    # The runtime of a container puts this file there.
    mkdir -p "$inside/etc"
    echo '127.0.0.1 localhost' > "$inside/etc/hosts"
    round_trip "$inside" "$machine" /usr/bin/fec
    lists_packages "$inside/usr/share/doc/fec/sbom.cdx.json" "$machine"
    if [ "$machine" = x86_64 ]; then
        [ "$(grep -c 'BEGIN CERTIFICATE' "$inside/etc/ssl/certs/ca-certificates.crt")" -gt 100 ] || fail "$1: no certificates"
    fi
    rm -r "$inside" "$scratch/layout" "$scratch/copied"
    note "$1: read in two ways, unpacked and run"
}

crate() {
    local name=${1%.crate} file
    tar -xzf "$folder/$1" -C "$scratch"
    for file in README.md LICENSE LICENSE-MIT LICENSE-APACHE Cargo.lock; do
        [ -f "$scratch/$name/$file" ] && [ ! -L "$scratch/$name/$file" ] || fail "$1: no $file"
    done
    ! grep -E '^path = "\.\.|^publish = false' "$scratch/$name/Cargo.toml" || fail "$1: leads out of its package, or nowhere"
    note "$1: has its licences and leads nowhere else"
}

wheel() {
    local site=$scratch/essential/usr/lib/python3/dist-packages
    essential
    mkdir -p "$site"
    python3 -m pip install -q --no-index --no-deps --target "$site" "$folder/$1"
    enter "$scratch/essential" native /usr/bin/python3 -c '
import fecshards, os
os.makedirs("/trial", exist_ok=True)
data = os.urandom(1_000_003)
open("/trial/file", "wb").write(data)
root = fecshards.encode_file("/trial/file", "/trial/shards", k=10, m=4, form="shards")
for path in sorted(os.listdir("/trial/shards"))[:4]: os.remove("/trial/shards/" + path)
assert fecshards.verify_file("/trial/shards", root=root).may_still_lose == 0
fecshards.decode_file("/trial/shards", "/trial/back", root=root)
assert open("/trial/back", "rb").read() == data
code = fecshards.Code(10, 4)
assert code.decode(dict(list(enumerate(code.encode(data)))[4:]), len(data)) == data
'
    rm -r "$scratch/essential/trial"
    note "$1: imported and run"
}

sources() {
    local name=fec-$version-source
    tar -xzf "$folder/$1" -C "$scratch"
    git archive --format=tar --prefix="$name/" HEAD | tar -tf - | LC_ALL=C sort > "$scratch/committed"
    tar -tzf "$folder/$1" | LC_ALL=C sort | diff "$scratch/committed" - || fail "$1: not what is committed"
    [ "$(sed -n 's/^version = "\(.*\)"$/\1/p' "$scratch/$name/Cargo.toml" | sed -n 1p)" = "$version" ]
    note "$1: what is committed"
}

# The recipes name this release's source package, its digest and its address, and their systems read them.
recipes() {
    local at=$scratch/recipes sum address line pkgver pkgname pkgdesc source sha256sums arch depends makedepends
    mkdir "$at"
    tar -xzf "$folder/$1" -C "$at" --strip-components=1
    sum=$(sha256sum "$folder/fec-$version-source.tar.gz" | cut -d ' ' -f 1)
    address=$(of_workspace repository)/releases/download/v$version/fec-$version-source.tar.gz
    grep -F "sha256 \"$sum\"" "$at/homebrew/fec.rb" > /dev/null
    grep -F "url \"$address\"" "$at/homebrew/fec.rb" > /dev/null
    need ruby ruby
    ruby -c "$at/homebrew/fec.rb" > /dev/null
    # A PKGBUILD is a script of bash, and .SRCINFO says what it says.
    (
        cd "$at/aur"
        # shellcheck source=/dev/null
        . ./PKGBUILD
        [ "${source[*]} ${sha256sums[*]} $pkgver" = "$address $sum $version" ] || exit 1
        for line in "pkgver = $pkgver" "pkgdesc = ${pkgdesc:?}" "source = $address" "url = ${url:?}" "sha256sums = $sum" "pkgname = $pkgname" "${arch[@]/#/arch = }" "${depends[@]/#/depends = }" "${makedepends[@]/#/makedepends = }"; do
            grep -xF -e "$line" -e "	$line" .SRCINFO > /dev/null || fail ".SRCINFO lacks: $line"
        done
    ) || fail "the PKGBUILD is of another release"
    need nix-instantiate nix-bin
    nix-instantiate --option build-users-group "" --parse "$at/nixpkgs/package.nix" > /dev/null
    # In the place of nixpkgs.
    nix-instantiate --option build-users-group "" --eval --strict --store "$scratch/nix" -E "let it = (import $at/nixpkgs/package.nix) {
        lib = { licenses = { mit = 1; asl20 = 2; }; platforms.linux = 3; }; installShellFiles = 4;
        rustPlatform.buildRustPackage = make: make; fetchurl = from: from; }; in [ it.version it.src.url it.src.hash it.meta.mainProgram ]" > "$scratch/said"
    grep -F "$address" "$scratch/said" > /dev/null
    grep -F "\"$version\"" "$scratch/said" > /dev/null
    grep -F "sha256-$(xxd -r -p <<< "$sum" | base64)" "$scratch/said" > /dev/null
    cmp Cargo.lock "$at/nixpkgs/Cargo.lock"
    if [ -n "${BUILD-}" ]; then
        built_by_pkgbuild "$at/aur" "$folder/fec-$version-source.tar.gz"
        note "$1: the PKGBUILD builds what runs"
    fi
    note "$1: of this release, and read by bash, ruby and nix"
}

# built_by_pkgbuild FOLDER SOURCES: what makepkg does, by the functions of the PKGBUILD.
built_by_pkgbuild() {
    mkdir "$scratch/build" "$scratch/pkg"
    tar -xzf "$2" -C "$scratch/build"
    (
        set -e
        # shellcheck source=/dev/null
        . "$1/PKGBUILD"
        export pkgdir=$scratch/pkg
        cd "$scratch/build" && prepare
        cd "$scratch/build" && build
        cd "$scratch/build" && package
    )
    pages "$scratch/pkg/usr"
    rm -rf "$scratch/essential/opt/pkg" && mkdir -p "$scratch/essential/opt"
    cp -r "$scratch/pkg" "$scratch/essential/opt/pkg"
    round_trip "$scratch/essential" "$(uname -m)" /opt/pkg/usr/bin/fec
    rm -r "$scratch/essential/opt/pkg"
}

# install.sh in the clean root; and releases that it must not install.
installer() {
    local inside=$scratch/essential key=$scratch/other-key tarball=fec-$version-x86_64-unknown-linux-gnu.tar.gz
    [ -f "$folder/$tarball" ] || { echo "test-packages: install.sh is not tried, without $tarball"; return; }
    essential
    release() {
        rm -rf "$inside/release"
        mkdir "$inside/release"
        cp "$folder"/install.sh "$folder"/SHA256SUMS* "$folder/$tarball" "$inside/release"
    }
    installs() { enter "$inside" native /bin/sh -c 'FEC_FROM=/release PREFIX=/opt/fec sh /release/install.sh' > "$scratch/said" 2>&1; }
    release
    installs || { cat "$scratch/said" >&2; fail "install.sh"; }
    grep 'PATH=/opt/fec/bin' "$scratch/said" > /dev/null
    pages "$inside/opt/fec"
    round_trip "$inside" x86_64 /opt/fec/bin/fec
    [ -x "$inside/opt/fec/bin/fec-night" ] || fail "install.sh: no fec-night"
    # Again, over what is there.
    installs
    rm -r "$inside/opt/fec"
    refuses() {
        ! installs || fail "install.sh installs $1"
        [ ! -e "$inside/opt/fec" ] || fail "install.sh leaves something behind: $1"
        grep "$2" "$scratch/said" > /dev/null || { cat "$scratch/said" >&2; fail "install.sh does not say what is wrong with $1"; }
        release
    }
    release
    printf rot | dd of="$inside/release/$tarball" bs=1 seek=5000 conv=notrunc status=none
    refuses 'a package that was changed' 'is not what the release key signed'
    sed -i 's/^./0/' "$inside/release/SHA256SUMS"
    refuses 'a list that was changed' 'is not signed by the release key'
    rm "$inside/release/SHA256SUMS.sig"
    refuses 'a list without a signature' 'cannot get'
    ssh-keygen -q -t ed25519 -N '' -f "$key" < /dev/null
    (cd "$inside/release" && rm SHA256SUMS.sig && ssh-keygen -q -Y sign -f "$key" -n fec-release SHA256SUMS)
    refuses 'a list that somebody else signed' 'is not signed by the release key'
    # The same name with another one behind it, as an older release would have it.
    grep -v "$tarball" "$folder/SHA256SUMS" > "$inside/release/SHA256SUMS"
    refuses 'a list without the package' 'is not signed by the release key'
    head -c $(($(stat -c %s "$folder/install.sh") / 2)) "$folder/install.sh" > "$inside/release/install.sh"
    ! installs || [ ! -e "$inside/opt/fec" ] || fail "half of install.sh installs something"
    rm -r "$inside/release"
    note "install.sh: installed, and refused what the key did not sign"
}

cd "$folder"
sha256sum --quiet -c SHA256SUMS
find . -maxdepth 1 -type f ! -name 'SHA256SUMS*' -printf '%f\n' | LC_ALL=C sort > "$scratch/there"
cut -c 67- SHA256SUMS | LC_ALL=C sort | diff - "$scratch/there" || fail "SHA256SUMS is of other files than are there"
cd "$root"
note "SHA256SUMS: $(wc -l < "$scratch/there") packages are what it says"

# The same for all, and no power of two.
seq 10000000 10500000 > "$scratch/payload"
while read -r package; do
    case $package in
    *-source.tar.gz) sources "$package" ;;
    *-recipes.tar.gz) recipes "$package" ;;
    install.sh) installer ;;
    *.tar.gz) tarball "$package" ;;
    *.deb) debian "$package" ;;
    *-image-*.tar) image "$package" ;;
    *.crate) crate "$package" ;;
    *.whl) wheel "$package" ;;
    *) fail "$package: what is it?" ;;
    esac
done < "$scratch/there"
echo "test-packages: passed, $passed things in all"
