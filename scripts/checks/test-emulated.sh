#!/bin/bash
# The golden vectors on machines that are emulated: s390x, whose bytes stand the other way round, and riscv64.
#
#   scripts/checks/test-emulated.sh [s390x|riscv64]…
#
# Without a name: both. Needs rustup, which brings the standard library, qemu-user, and Debian's C compiler for the
# machine; on Debian, as root, it installs the latter two. A machine for which something is missing is left out.
#
#   CARGO_TARGET_DIR   it builds in the folder emulated in there
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

case ${1-} in -h | --help) show_help ;; esac
machines=("$@")
[ $# -gt 0 ] || machines=(s390x riscv64)
cd "$root"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/emulated

for machine in "${machines[@]}"; do
    case $machine in
    s390x) target=s390x-unknown-linux-gnu packages=(gcc-s390x-linux-gnu libc6-dev-s390x-cross) ;;
    riscv64) target=riscv64gc-unknown-linux-gnu packages=(gcc-riscv64-linux-gnu libc6-dev-riscv64-cross) ;;
    *) usage ;;
    esac
    compiler=$machine-linux-gnu-gcc
    { has "$compiler" && has "qemu-$machine"; } || ! may_install || install_packages "${packages[@]}" qemu-user
    if ! has "$compiler" || ! has "qemu-$machine" || ! has rustup || ! rustup target add "$target" 2> /dev/null; then
        echo "left out: $machine needs rustup with its target $target, $compiler and qemu-$machine"
        continue
    fi
    name=CARGO_TARGET_${target^^}
    name=${name//-/_}
    export "${name}_LINKER=$compiler" "${name}_RUNNER=qemu-$machine -L /usr/$machine-linux-gnu"
    # Emulation takes twenty times the time: of the tests, those that read or write golden vectors.
    cargo test --profile ci --target "$target" -p fec-core --test vectors --test layouts --test format
    cargo test --profile ci --target "$target" -p fecfile --test encodings -- golden sealed
    cargo test --profile ci --target "$target" -p fec-sidecar --test sidecars -- golden
done
