#!/bin/bash
# Makes the packages of fec, and one file SHA256SUMS over all that are in the folder.
#
#   scripts/release/package.sh [--to FOLDER] [PACKAGE…]
#
# PACKAGE, all of them if none is named:
#   x86_64, aarch64, armv7, riscv64   a tarball with the static binary that scripts/release/build-static.sh makes, and
#                                     an image of it
#   deb                               a package for Debian and Ubuntu on this machine's architecture
#   crates                            what would be published: all crates are built from what is in their packages.
#                                     Without that build: crates-unbuilt
#   wheel                             the package for Python
# They go to FOLDER, target/packages if it is not given. Needs Rust, Python 3 and a C compiler; as root on Debian it
# installs the rest. docs/guide/install.md says what is in each; scripts/release/test-packages.sh installs and runs
# them.
#
#   FEC_PROFILE         the profile that the wheel is compiled in, for tests; release if unset
#   SOURCE_DATE_EPOCH   the time of all files in the packages; that of the last commit if unset
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

CARGO_DEB=3.8.0
MATURIN=1.16.0

to='' packages=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --to) to=${2?"--to needs a folder"} && shift ;;
    x86_64 | aarch64 | armv7 | riscv64 | deb | crates | crates-unbuilt | wheel) packages+=("$1") ;;
    *) usage ;;
    esac
    shift
done
[ ${#packages[@]} -gt 0 ] || packages=(x86_64 aarch64 armv7 riscv64 deb crates wheel)
to=$(realpath -m -- "${to:-$root/target/packages}")
mkdir -p "$to"
cd "$root"
make_scratch

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | sed -n 1p)
if [ -z "${SOURCE_DATE_EPOCH-}" ]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2> /dev/null) || refuse "not a git checkout: SOURCE_DATE_EPOCH must be set"
fi
export SOURCE_DATE_EPOCH
umask 022

# pages FOLDER: all manual pages in FOLDER/man1, and completions under the names that shells look for. The command says
# itself which pages there are.
pages() {
    local fec page next=(fec) found
    fec=$(find_fec)
    mkdir -p "$1/man1"
    while [ ${#next[@]} -gt 0 ]; do
        found=()
        for page in "${next[@]}"; do
            # fec man prints the page of fec itself, fec man bench-link that of fec bench link.
            read -r -a name <<< "${page#fec}"
            "$fec" man "${name[@]#-}" > "$1/man1/$page.1"
            mapfile -t -O "${#found[@]}" found < <(sed -n 's/\\-/-/g; s/^\(fec-[a-z-]*\)(1)$/\1/p' "$1/man1/$page.1" | grep -v -- '-help$')
        done
        next=("${found[@]}")
    done
    "$fec" completions bash > "$1/fec.bash"
    "$fec" completions zsh > "$1/_fec"
    "$fec" completions fish > "$1/fec.fish"
}

# tree BINARY FOLDER: a folder that is laid out like /usr/local.
tree() {
    local share=$2/share
    install -D -m 755 "$1" "$2/bin/fec"
    install -m 755 scripts/release/fec-night.sh "$2/bin/fec-night"
    install -d "$share/man/man1" "$share/doc/fec"
    install -m 644 "$scratch"/pages/man1/*.1 "$share/man/man1"
    install -D -m 644 "$scratch/pages/fec.bash" "$share/bash-completion/completions/fec"
    install -D -m 644 "$scratch/pages/_fec" "$share/zsh/site-functions/_fec"
    install -D -m 644 "$scratch/pages/fec.fish" "$share/fish/vendor_completions.d/fec.fish"
    install -m 644 README.md CHANGELOG.md LICENSE LICENSE-APACHE LICENSE-MIT docs/guide/install.md docs/FORMAT.md "$share/doc/fec"
}

# tarball BINARY: named by what the compiler calls the machine, which is the folder that the binary is built in.
tarball() {
    local name
    name=fec-$version-$(basename "${1%/board/fec}")
    tree "$1" "$scratch/$name"
    tar -C "$scratch" --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" |
        gzip -9n > "$to/$name.tar.gz"
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
    install -D -m 644 -t "$rootfs/usr/share/doc/fec" LICENSE LICENSE-APACHE LICENSE-MIT
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
    local binary
    binary=$(scripts/release/build-static.sh "$1")
    tarball "$binary"
    image "$1" "$binary"
}

# The metadata is in crates/fec-cli/Cargo.toml. The binary is the one that `cargo build --release` makes.
deb() {
    [ "$(cargo deb --version 2> /dev/null || true)" = "cargo-deb $CARGO_DEB" ] || cargo install cargo-deb --version "=$CARGO_DEB" --locked --quiet
    need dpkg-shlibdeps dpkg-dev
    cargo build --release --locked --quiet -p fec-cli
    rm -rf target/pages
    mkdir -p target
    cp -R "$scratch/pages" target/pages
    rm -f "$to"/fec_*.deb
    cargo deb -p fec-cli --no-build --quiet --output "$to/"
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

wheel() {
    python3 -m venv "$scratch/venv"
    "$scratch/venv/bin/pip" install -q "maturin==$MATURIN"
    rm -f "$to"/fecshards-*.whl
    # Beside the command's: they share what they stand on.
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target} "$scratch/venv/bin/maturin" build --profile "${FEC_PROFILE:-release}" --locked --quiet \
        -m crates/fec-python/Cargo.toml -o "$to"
}

[[ " ${packages[*]} " =~ \ (x86_64|aarch64|armv7|riscv64|deb)\  ]] && pages "$scratch/pages"
for package in "${packages[@]}"; do
    echo "package: $package" >&2
    case $package in
    deb | crates | wheel) "$package" ;;
    crates-unbuilt) crates --no-verify ;;
    *) static "$package" ;;
    esac
done

cd "$to"
rm -f SHA256SUMS
find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\0' | sort -z | xargs -0 sha256sum -- > "$scratch/sums"
mv "$scratch/sums" SHA256SUMS
du -h -- * >&2
echo "$to"
