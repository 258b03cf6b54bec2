#!/bin/bash
# Makes the packages of fec, and one file SHA256SUMS over all that are in the folder.
#
#   scripts/release/package.sh [--to FOLDER] [PACKAGE…]
#
# PACKAGE, all but windows and wheels if none is named:
#   x86_64, aarch64, armv7, riscv64   a tarball with the static binary that scripts/release/build-static.sh makes, and
#                                     an image of it
#   deb                               a package for Debian and Ubuntu on this machine's architecture
#   crates                            what would be published: all crates are built from what is in their packages.
#                                     Without that build: crates-unbuilt
#   wheel                             the package for Python, for this machine
#   windows                           a zip with fec.exe for x86_64, as scripts/release/windows.sh makes it
#   wheels                            packages for Python for others: Linux with glibc 2.17 or musl 1.2 or newer and
#                                     macOS, each for x86_64 and aarch64, and Windows for x86_64. Nobody has run those
#                                     of macOS and Windows. Needs rustup
#   source                            the sources of the last commit; and recipes that build fec from them, for
#                                     Homebrew, the AUR and nixpkgs
# They go to FOLDER, target/packages if it is not given. Needs Rust, Python 3 and a C compiler; as root on Debian it
# installs the rest. docs/guide/install.md says what is in each; scripts/release/test-packages.sh installs and runs
# them, and scripts/release/test-reproducible.sh makes them twice.
#
#   FEC_RELEASE_KEY     a key of OpenSSH (ssh-keygen -t ed25519), or its public half if an agent has it: signs
#                       SHA256SUMS. Then there is install.sh, too, which believes this key; without one neither is made
#   FEC_PROFILE         the profile that the wheel is compiled in, for tests; release if unset
#   SOURCE_DATE_EPOCH   the time of all files in the packages; that of the last commit if unset
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

CARGO_DEB=3.8.0
CYCLONEDX=0.5.9
MATURIN=1.16.0
ZIG=0.17.1

to='' packages=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --to) to=${2?"--to needs a folder"} && shift ;;
    x86_64 | aarch64 | armv7 | riscv64 | deb | crates | crates-unbuilt | wheel | windows | wheels | source) packages+=("$1") ;;
    *) usage ;;
    esac
    shift
done
[ ${#packages[@]} -gt 0 ] || packages=(x86_64 aarch64 armv7 riscv64 deb crates wheel source)
to=$(realpath -m -- "${to:-$root/target/packages}")
mkdir -p "$to"
cd "$root"
make_scratch

version=$(of_workspace version)
if [ -z "${SOURCE_DATE_EPOCH-}" ]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2> /dev/null) || refuse "not a git checkout: SOURCE_DATE_EPOCH must be set"
fi
# Names are sorted in the same way everywhere.
export SOURCE_DATE_EPOCH LC_ALL=C
umask 022

# packed FOLDER FILE: a tarball of a folder in $scratch.
packed() {
    tar -C "$scratch" --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$1" | gzip -9n > "$2"
}

# sbom TARGET [FEATURES…]: the list of all that is in the binary, as $scratch/sbom.cdx.json, by CycloneDX's own tool.
sbom() {
    local at=$scratch/manifests
    [ "$(cargo cyclonedx --version 2> /dev/null || true)" = "cargo-cyclonedx-cyclonedx $CYCLONEDX" ] ||
        cargo install cargo-cyclonedx --version "=$CYCLONEDX" --locked --quiet
    # Beside each manifest it writes a file, and it names packages by their folders.
    mkdir -p "$at"
    tar --exclude target -cf - Cargo.toml Cargo.lock crates | tar -xf - -C "$at"
    (cd "$at" && cargo cyclonedx --quiet --manifest-path crates/fec-cli/Cargo.toml --format json --spec-version 1.5 --target "$1" --no-build-deps \
        --override-filename sbom "${@:2}")
    sed "s,$at,/fec,g" "$at/crates/fec-cli/sbom.json" > "$scratch/sbom.cdx.json"
}

# tree BINARY FOLDER: a folder that is laid out like /usr/local.
tree() {
    local share=$2/share
    install -D -m 755 "$1" "$2/bin/fec"
    install -m 755 scripts/release/fec-night.sh "$2/bin/fec-night"
    install -d "$share/man/man1" "$share/doc/fec" "$2/lib/systemd/system"
    install -m 644 "$scratch"/pages/man1/*.1 "$share/man/man1"
    install -D -m 644 "$scratch/pages/fec.bash" "$share/bash-completion/completions/fec"
    install -D -m 644 "$scratch/pages/_fec" "$share/zsh/site-functions/_fec"
    install -D -m 644 "$scratch/pages/fec.fish" "$share/fish/vendor_completions.d/fec.fish"
    install -m 644 README.md CHANGELOG.md LICENSE LICENSE-APACHE LICENSE-MIT docs/guide/install.md docs/FORMAT.md \
        "$scratch/sbom.cdx.json" "$share/doc/fec"
    install -m 644 examples/systemd/* "$2/lib/systemd/system"
}

# tarball BINARY: named by what the compiler calls the machine, which is the folder that the binary is built in.
tarball() {
    local name
    name=fec-$version-$(basename "${1%/board/fec}")
    tree "$1" "$scratch/$name"
    packed "$name" "$to/$name.tar.gz"
}

# The certificates that programs trust, as Debian packages them: those of this machine may be its own.
certificates() {
    (
        cd "$scratch"
        chmod 755 .
        export DEBIAN_FRONTEND=noninteractive
        apt-get download -q ca-certificates > /dev/null 2>&1 || { apt-get update -q >&2 && apt-get download -q ca-certificates >&2; }
        dpkg-deb -x ca-certificates_*.deb ca
        cat ca/usr/share/ca-certificates/mozilla/*.crt
    )
}

# image MACHINE BINARY: nothing but the binary, a folder for temporary files, one to work in, and what stores are
# reached with.
image() {
    local rootfs=$scratch/image-$1
    install -D -m 755 "$2" "$rootfs/usr/bin/fec"
    install -d -m 1777 "$rootfs/tmp"
    install -d "$rootfs/data"
    install -D -m 644 -t "$rootfs/usr/share/doc/fec" LICENSE LICENSE-APACHE LICENSE-MIT "$scratch/sbom.cdx.json"
    if [ "$1" = x86_64 ]; then
        may_install || refuse "the image for x86_64 needs the certificates of Debian's package ca-certificates"
        install -d "$rootfs/etc/ssl/certs"
        certificates > "$rootfs/etc/ssl/certs/ca-certificates.crt"
        echo 'hosts: files dns' > "$rootfs/etc/nsswitch.conf"
    fi
    scripts/release/oci_image.py "$rootfs" "$to/fec-$version-image-$1.tar" --machine "$1" --name fec --tag "$version" --entrypoint /usr/bin/fec \
        --folder /data --label org.opencontainers.image.title=fec --label "org.opencontainers.image.version=$version" \
        --label 'org.opencontainers.image.licenses=MIT OR Apache-2.0'
}

static() {
    local binary target
    binary=$(scripts/release/build-static.sh "$1")
    target=$(basename "${binary%/board/fec}")
    # As scripts/release/build-static.sh builds: boards do without some features.
    if [ "$1" = x86_64 ]; then sbom "$target"; else sbom "$target" --no-default-features; fi
    tarball "$binary"
    image "$1" "$binary"
}

# with_paths_hidden COMMAND…: builds apart from what is built for tests, which has paths of this machine in it.
with_paths_hidden() (
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/dist CFLAGS=${CFLAGS-} RUSTFLAGS=${RUSTFLAGS-}
    CFLAGS+=$(path_maps -ffile-prefix-map)
    RUSTFLAGS+=$(path_maps --remap-path-prefix)
    "$@"
)

# The metadata is in crates/fec-cli/Cargo.toml.
deb() {
    [ "$(cargo deb --version 2> /dev/null || true)" = "cargo-deb $CARGO_DEB" ] || cargo install cargo-deb --version "=$CARGO_DEB" --locked --quiet
    need dpkg-shlibdeps dpkg-dev
    sbom "$(rustc -vV | sed -n 's/^host: //p')"
    rm -rf target/pages
    mkdir -p target
    cp -R "$scratch/pages" target/pages
    cp "$scratch/sbom.cdx.json" target/pages
    rm -f "$to"/fec_*.deb
    with_paths_hidden cargo build --release --locked --quiet -p fec-cli
    with_paths_hidden cargo deb -p fec-cli --no-build --quiet --output "$to/"
}

# crates [OPTIONS of cargo package…]: with nothing but the registry's packages, which are fetched before.
crates() {
    local target=${CARGO_TARGET_DIR:-target}/package
    cargo fetch --locked --quiet
    rm -f "$target"/*.crate
    # Built without optimisation: whether it builds is all that is asked.
    CARGO_PROFILE_DEV_DEBUG=0 cargo package --workspace --locked --offline --allow-dirty --quiet "$@"
    cp "$target"/*.crate "$to"
}

# zipped FOLDER FILE: a zip of a folder in $scratch.
zipped() {
    python3 - "$scratch" "$1" "$2" << 'END'
import os, sys, time, zipfile
at, folder, file = sys.argv[1:]
when = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
    for place, folders, names in os.walk(os.path.join(at, folder)):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            entry = zipfile.ZipInfo(os.path.relpath(path, at), when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            with open(path, "rb") as content:
                out.writestr(entry, content.read())
END
}

windows() {
    local made name=fec-$version-x86_64-pc-windows-gnu
    made=$(with_paths_hidden scripts/release/windows.sh | tail -n 1)
    sbom x86_64-pc-windows-gnu
    mkdir "$scratch/$name"
    cp "$made" README.md CHANGELOG.md LICENSE LICENSE-APACHE LICENSE-MIT docs/FORMAT.md docs/guide/windows.md \
        "$scratch/sbom.cdx.json" "$scratch/$name/"
    zipped "$name" "$to/$name.zip"
}

# maturin OPTIONS…: builds a wheel.
maturin() {
    local maturin=("$scratch/venv/bin/maturin" build --locked --quiet -m crates/fec-python/Cargo.toml -o "$to" "$@" --profile)
    if [ -n "${FEC_PROFILE-}" ]; then
        # Beside the command's: they share what they stand on.
        CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target} "${maturin[@]}" "$FEC_PROFILE"
    else
        with_paths_hidden "${maturin[@]}" release
    fi
}

wheel() {
    python3 -m venv "$scratch/venv"
    "$scratch/venv/bin/pip" install -q "maturin==$MATURIN"
    find "$to" -maxdepth 1 -name 'fecshards-*.whl' ! -name '*manylinux2014*' ! -name '*musllinux*' ! -name '*macosx*' ! -name '*win_amd64*' -delete
    maturin
}

# Zig links them: it has every libc. A standard library of Debian's comes with a compiler of its own.
wheels() (
    python3 -m venv "$scratch/venv"
    "$scratch/venv/bin/pip" install -q "maturin==$MATURIN" "ziglang==$ZIG"
    PATH=$scratch/venv/bin:$PATH
    rm -f "$to"/fecshards-*{manylinux2014,musllinux,macosx,win_amd64}*.whl
    for target in {x86_64,aarch64}-{unknown-linux-musl,apple-darwin}; do
        if ! has rustup || ! rustup target add "$target" 2> /dev/null; then refuse "wheels need rustup, and its target $target"; fi
        tags=()
        if [[ $target = *-musl ]]; then tags=(--compatibility musllinux_1_2); fi
        maturin --zig --target "$target" "${tags[@]}"
    done
    maturin --zig --target x86_64-unknown-linux-gnu --compatibility manylinux2014
    need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64
    rustup target add x86_64-pc-windows-gnu
    maturin --target x86_64-pc-windows-gnu
    scripts/release/build-static.sh --install aarch64
    # Only the compiler of these settings: the wheel is no static binary.
    compiler=$(scripts/release/build-static.sh --env aarch64 | sed -n 's/^RUSTC=//p')
    [ -z "$compiler" ] || export RUSTC=$compiler CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/wheels
    maturin --zig --target aarch64-unknown-linux-gnu --compatibility manylinux2014
)

# filled FILE WORD=VALUE…: prints the file, with the values of this release and these in the place of @WORDS@.
filled() {
    local file=$1 pair
    shift
    set -- "VERSION=$version" "REPOSITORY=$(of_workspace repository)" "$@"
    set -- "${@/#/s|@}"
    set -- "${@/%/|g}"
    sed "$(for pair; do echo "${pair/=/@|}"; done)" "$file"
}

# The sources that are committed, by git, and what Homebrew, the AUR and nixpkgs build them with.
sources() {
    local name=fec-$version-source recipes=fec-$version-recipes at=$scratch/fec-$version-recipes sum values file
    git archive --format=tar --prefix="$name/" HEAD | gzip -9n > "$to/$name.tar.gz"
    sum=$(sha256sum "$to/$name.tar.gz" | cut -d ' ' -f 1)
    values=("SOURCE=$(of_workspace repository)/releases/download/v$version/$name.tar.gz" "SHA256=$sum"
        "SRI=sha256-$(python3 -c 'import base64, sys; print(base64.b64encode(bytes.fromhex(sys.argv[1])).decode())' "$sum")"
        "DESCRIPTION=$(of_workspace description)" "MAINTAINER=$(sed -n 's/^authors = \["\(.*\)"\]$/\1/p' Cargo.toml)")
    mkdir -p "$at/homebrew" "$at/aur" "$at/nixpkgs"
    filled scripts/release/recipes/fec.rb "${values[@]}" > "$at/homebrew/fec.rb"
    filled scripts/release/recipes/PKGBUILD "${values[@]}" > "$at/aur/PKGBUILD"
    filled scripts/release/recipes/SRCINFO "${values[@]}" > "$at/aur/.SRCINFO"
    filled scripts/release/recipes/package.nix "${values[@]}" > "$at/nixpkgs/package.nix"
    install -m 644 Cargo.lock "$at/nixpkgs"
    ! grep -r '@[A-Z0-9]*@' --exclude Cargo.lock "$at" || fail "a word of the recipes has no value"
    packed "$recipes" "$to/$recipes.tar.gz"
}

# Told before anything is built.
[[ ! " ${packages[*]} " =~ " source " ]] || git diff --quiet HEAD || refuse "there are changes that are not committed: the sources would be without them"
[[ " ${packages[*]} " =~ \ (x86_64|aarch64|armv7|riscv64|deb)\  ]] && scripts/release/pages.sh "$(with_paths_hidden find_fec)" "$scratch/pages"
for package in "${packages[@]}"; do
    echo "package: $package" >&2
    case $package in
    deb | crates | wheel | windows | wheels) "$package" ;;
    source) sources ;;
    crates-unbuilt) crates --no-verify ;;
    *) static "$package" ;;
    esac
done

key=''
rm -f "$to/SHA256SUMS" "$to/SHA256SUMS.sig" "$to/install.sh"
if [ -n "${FEC_RELEASE_KEY-}" ]; then
    need ssh-keygen openssh-client
    key=$(realpath -e -- "$FEC_RELEASE_KEY")
    filled scripts/release/install.sh "KEY=$(ssh-keygen -y -f "$key" 2> /dev/null || cat "$key")" > "$to/install.sh"
fi
cd "$to"
find . -maxdepth 1 -type f ! -name 'SHA256SUMS*' -printf '%f\0' | sort -z | xargs -0 sha256sum -- > "$scratch/sums"
mv "$scratch/sums" SHA256SUMS
if [ -n "$key" ]; then
    ssh-keygen -q -Y sign -f "$key" -n fec-release SHA256SUMS
else
    echo "package: FEC_RELEASE_KEY names no key: SHA256SUMS is not signed, and there is no install.sh" >&2
fi
du -h -- * >&2
echo "$to"
