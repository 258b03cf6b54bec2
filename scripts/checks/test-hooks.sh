#!/bin/bash
# Runs borgmatic, git and resticprofile with the hooks of examples/hooks: backups, prunes and pushes, with damage in
# between.
#
#   scripts/checks/test-hooks.sh [--install] [FEC]
#
# It takes borgmatic, borg, git and restic; --install gets them on Debian, and resticprofile by pip. Without FEC the
# release build is made and used.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in
-h | --help) show_help ;;
--install)
    need borgmatic borgmatic && need borg borgbackup && need git git && need restic restic
    python3 -m venv --help > /dev/null 2>&1 || install_packages python3-venv
    shift
    ;;
esac
fec=$(find_fec "${1-}")
make_scratch
cd "$scratch"
mkdir bin home docs
ln -s "$fec" bin/fec
export PATH=$PWD/bin:$PATH HOME=$PWD/home
export BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes BORG_RELOCATED_REPO_ACCESS_IS_OK=yes

# damage FILE: eight bytes in the middle of it, without another time.
damage() {
    touch -r "$1" time
    chmod u+w "$1"
    printf 'damaged!' | dd of="$1" bs=1 seek=$(($(stat -c %s "$1") / 2)) conv=notrunc status=none
    touch -r time "$1"
}

echo 'borgmatic: backups, damage, prunes'
{
    printf 'location:\n    source_directories: [%s/docs]\n    repositories: [%s/borg]\nretention:\n    keep_daily: 1\n' "$PWD" "$PWD"
    sed "s|/srv/|$PWD/|" "$root/examples/hooks/borgmatic.yaml"
} > borgmatic.yaml
borgmatic() {
    command borgmatic -c borgmatic.yaml --log-file borgmatic.log "$@" > said 2>&1 || { cat said; fail "borgmatic $*"; }
}
for nth in 1 2 3 4 5; do head -c 300000 /dev/urandom > "docs/$nth"; done
borg init -e none borg 2> /dev/null
fec protect -q borg > /dev/null
for nth in 1 2 3; do
    head -c 200000 /dev/urandom > "docs/new-$nth"
    rm -f "docs/new-$((nth - 1))"
    borgmatic create
    fec verify -q borg.fecp
    segment=$(find borg/data -type f -size +100k | sort | head -n 1)
    cp "$segment" whole
    damage "$segment"
    ! fec verify -q borg.fecp 2> /dev/null || fail 'the damage is not noticed'
    # All actions, prune and compact among them.
    borgmatic
    ! [ -e "$segment" ] || cmp "$segment" whole
    fec verify -q borg.fecp
    borg check borg
done

echo 'git: pushes, damage'
git init -q --bare repository.git
git -C repository.git config receive.autogc false
cp "$root/examples/hooks/post-receive" repository.git/hooks/
fec protect -q --policy git repository.git > /dev/null
git init -q work
cd work
git config user.email nobody@example.org
git config user.name nobody
for nth in 1 2 3; do
    head -c 50000 /dev/urandom > "file-$nth"
    git add -A
    git commit -q -m "$nth"
    git push -q ../repository.git "HEAD:refs/heads/branch-$nth" 2> ../said || { cat ../said; fail 'git push'; }
    fec verify -q ../repository.git.fecp
done
object=$(find ../repository.git/objects -type f -size +20k | sort | head -n 1)
damage "$object"
! git -C ../repository.git fsck > /dev/null 2>&1 || fail 'git does not notice the damage'
fec repair -q ../repository.git.fecp
git -C ../repository.git fsck > /dev/null 2>&1 || fail 'git finds the damage that was mended'
cd ..

if ! { python3 -m venv profiles && profiles/bin/pip -q install resticprofile==0.5.2; } > said 2>&1; then
    cat said
    echo 'test-hooks: resticprofile is not to be had, and is left out'
    exit 0
fi
echo 'resticprofile: backups, damage'
echo word > password
export RESTIC_PASSWORD_FILE=$PWD/password
{
    printf '[default]\nrepository = "local:%s/restic"\npassword-file = "%s"\n' "$PWD" "$RESTIC_PASSWORD_FILE"
    sed "s|/srv/|$PWD/|g; /^\[default.backup\]/a source = [\"$PWD/docs\"]" "$root/examples/hooks/resticprofile.conf"
} > profiles.conf
profile() { profiles/bin/resticprofile -c profiles.conf -n default "$1" > said 2>&1 || { cat said; fail "resticprofile $1"; }; }
restic -q -r restic init
restic -q -r restic backup docs
fec protect -q restic > /dev/null
for nth in 6 7 8; do
    head -c 900000 /dev/urandom > "docs/$nth"
    pack=$(find restic/data -type f -size +500k | sort | head -n 1)
    cp "$pack" whole
    damage "$pack"
    profile backup
    cmp "$pack" whole
    fec verify -q restic.fecp
done
"$root/scripts/release/fec-night.sh" --prunes restic -- restic -q -r restic forget --prune --keep-last 1 > /dev/null
fec verify -q restic.fecp
restic -q -r restic check --read-data
echo 'all hooks do what the guide says'
